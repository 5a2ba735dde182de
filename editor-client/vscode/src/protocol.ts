/** The messages beyond the standard protocol (editor-client/PROTOCOL.md), as types. Knows neither VS Code nor the client. */
import type { Diagnostic, Range, TextDocumentIdentifier, WorkspaceEdit } from 'vscode-languageclient/node';

export type ServerState = 'starting' | 'downloading' | 'loading' | 'ready' | 'busy' | 'paused' | 'error';

/** `draftwood/status`, sent by the server whenever its state changes. */
export interface Status {
  state: ServerState;
  /** 0..1, while downloading or loading. */
  progress?: number | null;
  model?: string | null;
  message?: string | null;
}

/** What a command is about: the one argument object of every `draftwood.*` command. */
export interface Target {
  textDocument: TextDocumentIdentifier;
  range?: Range;
  instruction?: string;
  question?: string;
  message?: string;
  diagnostics?: Diagnostic[];
}

/** `draftwood/answer`: runs a command and streams its Markdown as `$/progress` on `token`. */
export interface AnswerParams {
  command: string;
  textDocument: TextDocumentIdentifier;
  range?: Range;
  arguments: Omit<Target, 'textDocument' | 'range'>;
  token: string;
}

export interface AnswerChunk {
  text: string;
}

export interface AnswerResult {
  /** The whole Markdown; what was streamed before is a beginning of it. */
  text: string;
  /** A change for the user to look at and accept. */
  edit?: WorkspaceEdit | null;
}

/** What `draftwood.stats` returns; a server may leave out what it does not know. */
export type Stats = Record<string, string | number | null>;

/** The commands that produce an answer; which of them exist is the server's choice. */
export const ANSWERING = ['explain', 'fix', 'docstring', 'tests', 'edit', 'reason'] as const;
export type Answering = (typeof ANSWERING)[number];

export function answering(command: string): Answering | undefined {
  return ANSWERING.find((name) => command === `draftwood.${name}`);
}
