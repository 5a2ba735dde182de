/** The extension's parts and how they are joined. All logic about code lives in the server. */
import * as vscode from 'vscode';
import { type LanguageClient, State } from 'vscode-languageclient/node';
import { AnswerView } from './answerView';
import { Answers } from './answers';
import { makeClient } from './client';
import { showMenu } from './menu';
import { Pause } from './pause';
import { Preview } from './preview';
import { ANSWERING, type Stats, type Status } from './protocol';
import { type Program, findProgram } from './python';
import { StatusItem } from './status';

const RESTARTING = ['command', 'python', 'languages'].map((name) => `draftwood.${name}`);
const STATS = 'draftwood.stats';
const STATS_EVERY_MS = 2000;

export class Draftwood implements vscode.Disposable {
  readonly log = vscode.window.createOutputChannel('Draftwood', { log: true });
  readonly pause: Pause;
  program: Program | undefined;
  private readonly status: StatusItem;
  private readonly answers: Answers;
  private readonly parts: vscode.Disposable[];
  private client: LanguageClient | undefined;
  /** Starts and stops follow one another, however fast settings change. */
  private turn: Promise<void> = Promise.resolve();
  private statsAt = 0;

  constructor(private readonly context: vscode.ExtensionContext) {
    this.pause = new Pause(context.workspaceState, context.globalState);
    this.status = new StatusItem(this.pause);
    const view = new AnswerView(vscode.Uri.joinPath(context.extensionUri, 'media'));
    const preview = new Preview();
    this.answers = new Answers(view, preview);
    this.parts = [this.log, this.status, view, preview, this.answers];
  }

  /** Stops what runs and starts anew. `ask`: the user may be asked to install the server. */
  restart(ask: boolean): Promise<void> {
    this.turn = this.turn.then(async () => {
      await this.stop();
      await this.start(ask);
    });
    return this.turn;
  }

  private async start(ask: boolean): Promise<void> {
    this.status.show({ state: 'starting' });
    const storage = this.context.globalStorageUri;
    await vscode.workspace.fs.createDirectory(storage);
    this.program = await findProgram(storage, this.log, ask);
    if (!this.program) {
      this.status.show({ state: 'error', message: 'The server is not installed. Click to install it.' });
      return;
    }
    const client = makeClient({
      program: this.program,
      folder: storage,
      log: this.log,
      pause: this.pause,
      answers: this.answers,
      onDied: (again) => void this.died(again),
      onAccepted: () => void this.refreshStats(client),
    });
    this.client = client;
    client.onNotification('draftwood/status', (status: Status) => this.received(client, status));
    client.onDidChangeState(({ newState }) => void this.offer(newState === State.Running ? client : undefined));
    try {
      await client.start();
    } catch (error) {
      this.log.error(`the server did not start: ${error}`);
      await this.died(false);
    }
  }

  private received(client: LanguageClient, status: Status): void {
    this.status.show(status);
    if (status.state === 'ready' && Date.now() - this.statsAt > STATS_EVERY_MS) void this.refreshStats(client);
  }

  private async refreshStats(client: LanguageClient): Promise<void> {
    if (!commandsOf(client).includes(STATS)) return;
    this.statsAt = Date.now();
    try {
      const stats = await client.sendRequest<Stats>('workspace/executeCommand', { command: STATS, arguments: [{}] });
      this.status.showStats(stats ?? {});
    } catch (error) {
      this.log.warn(`no figures: ${error}`);
    }
  }

  /** Shows the menu entries of exactly those commands that this server has. */
  private async offer(client: LanguageClient | undefined): Promise<void> {
    const offered = client ? commandsOf(client) : [];
    for (const name of ANSWERING) {
      const known = offered.includes(`draftwood.${name}`);
      await vscode.commands.executeCommand('setContext', `draftwood.offers.${name}`, known);
    }
    await vscode.commands.executeCommand('setContext', 'draftwood.running', client !== undefined);
  }

  private async died(again: boolean): Promise<void> {
    if (again) {
      this.status.show({ state: 'starting', message: 'The server stopped and is started again.' });
      return;
    }
    this.status.show({ state: 'error', message: 'The server does not stay up. Its log says why.' });
    const [restart, show] = ['Restart', 'Show Log'];
    const answer = await vscode.window.showErrorMessage('Draftwood: the server does not stay up.', restart, show);
    if (answer === restart) await this.restart(true);
    if (answer === show) this.log.show();
  }

  private async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    this.answers.stop();
    if (!client) return;
    // A server that is starting or already dead cannot be asked to stop; disposing of it ends its process.
    await client.dispose().catch((error: unknown) => this.log.warn(`the server did not stop by itself: ${error}`));
  }

  async close(): Promise<void> {
    await this.turn;
    await this.stop();
  }

  dispose(): void {
    vscode.Disposable.from(...this.parts).dispose();
  }
}

function commandsOf(client: LanguageClient): string[] {
  return client.initializeResult?.capabilities.executeCommandProvider?.commands ?? [];
}

let running: Draftwood | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const draftwood = new Draftwood(context);
  running = draftwood;
  const register = vscode.commands.registerCommand;
  context.subscriptions.push(
    draftwood,
    register('draftwood.menu', () => showMenu(draftwood)),
    register('draftwood.restart', () => draftwood.restart(true)),
    register('draftwood.showLog', () => draftwood.log.show()),
    register('draftwood.pause', () => draftwood.pause.toggleHere()),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (RESTARTING.some((name) => event.affectsConfiguration(name))) void draftwood.restart(true);
    }),
  );
  // Not awaited: a first run may wait for the user, and the editor must not wait for either.
  void draftwood.restart(true);
}

export const deactivate = (): Promise<void> | undefined => running?.close();
