/** Makes the language client: what it serves, what it hands to the view, what happens when the server dies. */
import * as vscode from 'vscode';
import {
  CloseAction,
  ErrorAction,
  type ErrorHandler,
  LanguageClient,
  type LanguageClientOptions,
  type Middleware,
  RevealOutputChannelOn,
} from 'vscode-languageclient/node';
import type { Answers } from './answers';
import type { Pause } from './pause';
import { type Target, answering } from './protocol';
import type { Program } from './python';

const SCHEMES = ['file', 'untitled', 'vscode-notebook-cell', 'vscode-remote'];
const ACCEPTED = 'draftwood.accepted';
const CRASHES = 4;
const CRASH_MINUTES = 3;

export interface ClientParts {
  program: Program;
  folder: vscode.Uri;
  log: vscode.LogOutputChannel;
  pause: Pause;
  answers: Answers;
  /** The server died; `again` says whether it is started once more. */
  onDied(again: boolean): void;
  /** A suggestion was accepted, and the server knows. */
  onAccepted(): void;
}

/** Says nothing by itself: what the user has to know is told once, in the status bar and by `onDied`. */
class QuietClient extends LanguageClient {
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}

export function makeClient(parts: ClientParts): LanguageClient {
  const configuration = vscode.workspace.getConfiguration('draftwood');
  const languages = configuration.get<string[]>('languages', ['python']);
  const options: LanguageClientOptions = {
    documentSelector: languages.flatMap((language) => SCHEMES.map((scheme) => ({ scheme, language }))),
    outputChannel: parts.log,
    revealOutputChannelOn: RevealOutputChannelOn.Never,
    initializationOptions: { ...configuration },
    synchronize: { configurationSection: 'draftwood' },
    errorHandler: crashGuard(parts),
    initializationFailedHandler: () => false,
    middleware: middleware(parts, () => client),
  };
  const { command, args } = parts.program;
  // Its own folder: a program that is looked for in the opened one would be a way in for a hostile repository.
  const run = { command, args: [...args, 'serve'], options: { cwd: parts.folder.fsPath } };
  const client = new QuietClient('draftwood', 'Draftwood', run, options);
  return client;
}

function middleware(parts: ClientParts, client: () => LanguageClient): Middleware {
  return {
    provideInlineCompletionItems: (document, position, context, token, next) =>
      parts.pause.covers(document) ? undefined : next(document, position, context, token),
    provideCodeLenses: (document, token, next) =>
      vscode.workspace.getConfiguration('draftwood', document).get('codeLens', true) ? next(document, token) : [],
    executeCommand: async (command, args, next) => {
      const name = answering(command);
      if (name) return parts.answers.ask(client(), name, args[0] as Target | undefined);
      const result = await next(command, args);
      if (command === ACCEPTED) parts.onAccepted();
      return result;
    },
  };
}

/** Restarts a server that died, but not one that dies again and again. */
function crashGuard({ onDied }: ClientParts): ErrorHandler {
  const deaths: number[] = [];
  return {
    error: () => ({ action: ErrorAction.Continue, handled: true }),
    closed: () => {
      const now = Date.now();
      deaths.push(now);
      const recent = deaths.filter((at) => now - at < CRASH_MINUTES * 60_000);
      const again = recent.length < CRASHES;
      onDied(again);
      return { action: again ? CloseAction.Restart : CloseAction.DoNotRestart, handled: true };
    },
  };
}
