/** The status bar item: what the server is doing, with its figures on hover. Knows the protocol's states and nothing else. */
import * as vscode from 'vscode';
import type { Pause } from './pause';
import type { ServerState, Stats, Status } from './protocol';

const ICONS: Record<ServerState, string> = {
  starting: '$(loading~spin)',
  downloading: '$(cloud-download)',
  loading: '$(loading~spin)',
  ready: '$(sparkle)',
  busy: '$(sync~spin)',
  paused: '$(debug-pause)',
  error: '$(error)',
};
const SAYS: Record<ServerState, string> = {
  starting: 'starting',
  downloading: 'downloading the model',
  loading: 'loading the model',
  ready: 'ready',
  busy: 'writing',
  paused: 'paused',
  error: 'not running',
};

/** `tokens_per_second` -> `Tokens per second`. */
const title = (name: string) => (name.charAt(0).toUpperCase() + name.slice(1)).replaceAll('_', ' ');
const figure = (value: string | number) =>
  typeof value === 'number' && !Number.isInteger(value) ? value.toFixed(2) : String(value);
const escaped = (text: string) => text.replace(/[\\`*_{}[\]()#+\-.!|<>]/g, '\\$&');

export class StatusItem implements vscode.Disposable {
  private readonly item: vscode.StatusBarItem;
  private readonly subscriptions: vscode.Disposable[];
  private status: Status = { state: 'starting' };
  private stats: Stats = {};

  constructor(private readonly pause: Pause) {
    this.item = vscode.window.createStatusBarItem('draftwood.status', vscode.StatusBarAlignment.Right, 100);
    this.item.name = 'Draftwood';
    this.item.command = 'draftwood.menu';
    this.subscriptions = [
      this.item,
      pause.onDidChange(() => this.draw()),
      vscode.window.onDidChangeActiveTextEditor(() => this.draw()),
    ];
    this.draw();
    this.item.show();
  }

  show(status: Status): void {
    this.status = status;
    this.draw();
  }

  showStats(stats: Stats): void {
    this.stats = stats;
    this.draw();
  }

  /** What the user sees: a pause hides what works, never what is wrong. */
  private get state(): ServerState {
    const working = this.status.state === 'ready' || this.status.state === 'busy';
    return working && this.pause.covers(vscode.window.activeTextEditor?.document) ? 'paused' : this.status.state;
  }

  private draw(): void {
    const state = this.state;
    const { progress } = this.status;
    const percent =
      (state === 'downloading' || state === 'loading') && typeof progress === 'number'
        ? ` ${Math.floor(progress * 100)}%`
        : '';
    this.item.text = `${ICONS[state]} Draftwood${percent}`;
    this.item.backgroundColor =
      state === 'error' ? new vscode.ThemeColor('statusBarItem.errorBackground') : undefined;
    this.item.tooltip = this.hover(state, percent);
    this.item.accessibilityInformation = { label: `Draftwood: ${SAYS[state]}${percent}` };
  }

  private hover(state: ServerState, percent: string): vscode.MarkdownString {
    const text = new vscode.MarkdownString(`**Draftwood** — ${SAYS[state]}${percent}\n\n`, true);
    if (this.status.message) text.appendMarkdown(`${escaped(this.status.message)}\n\n`);
    const figures: Stats = { model: this.status.model ?? null, ...this.stats };
    const rows = Object.entries(figures).filter(
      (row): row is [string, string | number] => row[1] !== null && row[1] !== '',
    );
    if (rows.length > 0) {
      const table = rows.map(([name, value]) => `| ${title(name)} | ${escaped(figure(value))} |`);
      text.appendMarkdown(['| | |', '| --- | --- |', ...table].join('\n'));
    }
    return text;
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
  }
}
