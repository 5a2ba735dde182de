// Bundles the extension (for Node) and the answer page (for the webview). `--watch` rebuilds on change.
import * as esbuild from 'esbuild';

const shared = { bundle: true, minify: true, logLevel: 'warning', legalComments: 'none' };
const builds = [
  { ...shared, entryPoints: ['src/extension.ts'], outfile: 'dist/extension.js', platform: 'node', format: 'cjs', target: 'node18', external: ['vscode'] },
  { ...shared, entryPoints: ['src/webview/answer.ts'], outfile: 'media/answer.js', platform: 'browser', format: 'iife', target: 'chrome114' },
];
if (process.argv.includes('--watch')) {
  await Promise.all(builds.map(async (options) => (await esbuild.context(options)).watch()));
} else {
  await Promise.all(builds.map((options) => esbuild.build(options)));
}
