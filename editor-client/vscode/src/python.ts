/**
 * Finds the program that serves: a configured command, or a Python that has the server, or one that we make.
 * Knows processes and settings; nothing of the language client.
 */
import { execFile } from 'node:child_process';
import * as path from 'node:path';
import * as vscode from 'vscode';

/** A command line to which `serve`, `doctor` or `models` is appended. */
export interface Program {
  command: string;
  args: string[];
}

interface Probe {
  version: [number, number];
  installed: boolean;
}

const OLDEST: [number, number] = [3, 11];
const PROBE =
  'import importlib.util as u, json, sys;' +
  'print(json.dumps({"version": sys.version_info[:2], "installed": u.find_spec("lsp_server") is not None}))';
const INSTALL = 'Install';
const CHOOSE = 'Choose Python…';

/** -P: never import from the folder that happens to be open. */
const program = (python: string): Program => ({ command: python, args: ['-P', '-m', 'lsp_server.cli'] });

/** The Python of the environment that `install` makes; it belongs to the extension alone. */
function ownPython(storage: vscode.Uri): string {
  const folder = path.join(storage.fsPath, 'python');
  return process.platform === 'win32'
    ? path.join(folder, 'Scripts', 'python.exe')
    : path.join(folder, 'bin', 'python');
}

/** Interpreters worth asking, best first. Those of the opened folder count only once it is trusted. */
async function candidates(storage: vscode.Uri, configuration: vscode.WorkspaceConfiguration): Promise<string[]> {
  const chosen = configuration.get<string>('python', '').trim();
  if (chosen) return [chosen, ownPython(storage)]; // the latter may have been made from the former
  const found = [ownPython(storage)];
  const selected = vscode.workspace.isTrusted ? await selectedInterpreter() : undefined;
  if (selected) found.push(selected);
  return [...found, process.platform === 'win32' ? 'python' : 'python3'];
}

/** What the Python extension has selected, if that extension is there. */
async function selectedInterpreter(): Promise<string | undefined> {
  const extension = vscode.extensions.getExtension('ms-python.python');
  if (!extension) return undefined;
  const api = await extension.activate();
  const environment = await api?.environments?.resolveEnvironment?.(api.environments.getActiveEnvironmentPath());
  return environment?.executable?.uri?.fsPath;
}

async function probe(python: string): Promise<Probe | undefined> {
  try {
    return JSON.parse(await run(python, ['-P', '-c', PROBE])) as Probe;
  } catch {
    // A Python before 3.11 does not know -P; ask without it, so that the message can name its version.
    try {
      return { ...(JSON.parse(await run(python, ['-c', PROBE])) as Probe), installed: false };
    } catch {
      return undefined; // no such program
    }
  }
}

const recent = (found: Probe) =>
  found.version[0] > OLDEST[0] || (found.version[0] === OLDEST[0] && found.version[1] >= OLDEST[1]);

/**
 * The program to start, or undefined when there is none yet and the user did not want one installed.
 * Asks the user at most once.
 */
export async function findProgram(
  storage: vscode.Uri,
  log: vscode.LogOutputChannel,
  ask: boolean,
): Promise<Program | undefined> {
  const configuration = vscode.workspace.getConfiguration('draftwood');
  const [command, ...args] = configuration.get<string[]>('command', []);
  if (command) return { command, args };
  let base: string | undefined;
  const tried: string[] = [];
  for (const python of await candidates(storage, configuration)) {
    const found = await probe(python);
    if (found?.installed && recent(found)) {
      log.info(`server found for ${python} (Python ${found.version.join('.')})`);
      return program(python);
    }
    tried.push(found ? `${python} (Python ${found.version.join('.')}, no Draftwood)` : `${python} (not found)`);
    if (found && recent(found) && python !== ownPython(storage)) base ??= python;
  }
  log.warn(`no server: tried ${tried.join(', ')}`);
  return ask ? offer(base, storage, log) : undefined;
}

async function offer(
  base: string | undefined,
  storage: vscode.Uri,
  log: vscode.LogOutputChannel,
): Promise<Program | undefined> {
  const question = base
    ? 'Draftwood needs its server. Install it into an environment of its own?'
    : `Draftwood needs Python ${OLDEST.join('.')} or newer, and found none.`;
  const answer = await vscode.window.showInformationMessage(question, ...(base ? [INSTALL, CHOOSE] : [CHOOSE]));
  if (answer === CHOOSE) await vscode.commands.executeCommand('workbench.action.openSettings', 'draftwood.python');
  return answer === INSTALL && base ? install(base, storage, log) : undefined;
}

/** Makes an environment in the extension's own storage and installs the server there, with progress and cancel. */
async function install(
  base: string,
  storage: vscode.Uri,
  log: vscode.LogOutputChannel,
): Promise<Program | undefined> {
  const what = vscode.workspace.getConfiguration('draftwood').get<string>('package', 'draftwood');
  const folder = path.join(storage.fsPath, 'python');
  const options = { location: vscode.ProgressLocation.Notification, title: 'Draftwood', cancellable: true };
  try {
    return await vscode.window.withProgress(options, async (progress, token) => {
      progress.report({ message: 'making a Python environment…' });
      await run(base, ['-m', 'venv', '--clear', folder], log, token);
      progress.report({ message: `installing ${what}… (this happens once)` });
      const pip = ['-m', 'pip', 'install', '--disable-pip-version-check', '--progress-bar', 'off', what];
      await run(ownPython(storage), pip, log, token);
      return program(ownPython(storage));
    });
  } catch (error) {
    await vscode.workspace.fs.delete(vscode.Uri.file(folder), { recursive: true }).then(undefined, () => undefined);
    log.error(`installation failed: ${error}`);
    const show = 'Show Log';
    const answer = await vscode.window.showErrorMessage(whatToDo(`${error}`), show);
    if (answer === show) log.show();
    return undefined;
  }
}

/** What to do about an installation that failed: Debian and Ubuntu keep a part of Python's `venv` in a package apart. */
function whatToDo(failure: string): string {
  if (!/ensurepip|No module named '?venv/.test(failure)) return 'Draftwood could not install its server.';
  const needed = /\bapt(?:-get)? install (python[\w.]*-venv)/.exec(failure)?.[1] ?? 'python3-venv';
  return `Draftwood needs Python's venv module. Run "sudo apt install ${needed}" in a terminal, then reload the window.`;
}

/** Runs a program to its end. Rejects with what it said on a failure or a cancel. */
function run(
  command: string,
  args: string[],
  log?: vscode.LogOutputChannel,
  token?: vscode.CancellationToken,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(command, args, { maxBuffer: 1 << 26, windowsHide: true }, (error, stdout, stderr) => {
      stop?.dispose();
      if (error) reject(new Error(`${stderr}\n${stdout}`.trim() || error.message));
      else resolve(stdout);
    });
    const stop = token?.onCancellationRequested(() => child.kill());
    child.stdout?.on('data', (text: string) => log?.info(text.trimEnd()));
    child.stderr?.on('data', (text: string) => log?.warn(text.trimEnd()));
  });
}

/** The one JSON object that a subcommand prints, for example `models list --json`. */
export async function ask<T>(program: Program, ...args: string[]): Promise<T> {
  return JSON.parse(await run(program.command, [...program.args, ...args])) as T;
}
