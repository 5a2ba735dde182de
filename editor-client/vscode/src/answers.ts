/** Runs an answering command: asks the server, streams into the view, hands a proposed change to the preview. */
import { randomUUID } from 'node:crypto';
import * as vscode from 'vscode';
import { type LanguageClient, LSPErrorCodes, ProgressType, ResponseError } from 'vscode-languageclient/node';
import type { AnswerView } from './answerView';
import type { Preview } from './preview';
import type { AnswerChunk, AnswerParams, AnswerResult, Answering, Target } from './protocol';

const TITLES: Record<Answering, string> = {
  explain: 'Explain',
  fix: 'Fix',
  docstring: 'Docstring',
  tests: 'Tests',
  edit: 'Edit',
  reason: 'Reason',
};
/** The commands that need words from the user, and where the words go. */
const WORDS: Partial<Record<Answering, { key: 'instruction' | 'question'; prompt: string }>> = {
  edit: { key: 'instruction', prompt: 'What should change in the selection?' },
  reason: { key: 'question', prompt: 'What would you like to know?' },
};

export class Answers implements vscode.Disposable {
  private readonly subscription: vscode.Disposable;
  private running: vscode.CancellationTokenSource | undefined;
  private last: { client: LanguageClient; name: Answering; target: Target } | undefined;

  constructor(
    private readonly view: AnswerView,
    private readonly preview: Preview,
  ) {
    this.subscription = view.onDidAsk((what) => {
      if (what === 'stop') this.stop();
      else if (this.last) void this.run(this.last.client, this.last.name, this.last.target);
    });
  }

  stop(): void {
    this.running?.cancel();
  }

  /** `given` is what a code action or a code lens names; without it the active editor's selection is meant. */
  async ask(client: LanguageClient, name: Answering, given: Target | undefined): Promise<void> {
    const target = given?.textDocument ? { ...given } : selected(client, name);
    if (!target) {
      void vscode.window.showInformationMessage('Open a file first.');
      return;
    }
    const words = WORDS[name];
    if (words && !target[words.key]) {
      const said = await vscode.window.showInputBox({ title: `Draftwood: ${TITLES[name]}`, prompt: words.prompt });
      if (!said) return;
      target[words.key] = said;
    }
    await this.run(client, name, target);
  }

  private async run(client: LanguageClient, name: Answering, target: Target): Promise<void> {
    this.stop();
    this.last = { client, name, target };
    const source = new vscode.CancellationTokenSource();
    this.running = source;
    const token = randomUUID();
    let streamed = '';
    const chunks = client.onProgress(new ProgressType<AnswerChunk>(), token, ({ text }) => {
      streamed += text;
      if (this.running === source) this.view.add(text);
    });
    try {
      await this.view.begin(title(client, name, target));
      const versions = new Map(vscode.workspace.textDocuments.map((d) => [d.uri.toString(), d.version]));
      const result = await client.sendRequest<AnswerResult>('draftwood/answer', params(name, target, token), source.token);
      if (this.running !== source) return;
      this.view.add(result.text.startsWith(streamed) ? result.text.slice(streamed.length) : '');
      this.view.end('done', Boolean(result.edit));
      const edit = await client.protocol2CodeConverter.asWorkspaceEdit(result.edit);
      if (edit) await this.preview.propose(edit, versions);
    } catch (error) {
      if (this.running === source) this.fail(error, source.token.isCancellationRequested);
    } finally {
      chunks.dispose();
      source.dispose();
      if (this.running === source) this.running = undefined;
    }
  }

  private fail(error: unknown, stopped: boolean): void {
    const cancelled = error instanceof ResponseError && error.code === LSPErrorCodes.RequestCancelled;
    if (stopped || cancelled) this.view.end('stopped', false);
    else this.view.end('failed', false, error instanceof Error ? error.message : String(error));
  }

  dispose(): void {
    this.stop();
    this.subscription.dispose();
  }
}

function params(name: Answering, target: Target, token: string): AnswerParams {
  const { textDocument, range, ...rest } = target;
  return { command: `draftwood.${name}`, textDocument, range, arguments: rest, token };
}

/** The selection of the active editor; a fix is also told which problems are shown there. */
function selected(client: LanguageClient, name: Answering): Target | undefined {
  const editor = vscode.window.activeTextEditor;
  if (!editor) return undefined;
  const { document, selection } = editor;
  const convert = client.code2ProtocolConverter;
  const target: Target = {
    textDocument: convert.asTextDocumentIdentifier(document),
    range: convert.asRange(selection),
  };
  if (name === 'fix') {
    const here = vscode.languages.getDiagnostics(document.uri).filter((d) => d.range.intersection(selection));
    target.diagnostics = here.map((diagnostic) => convert.asDiagnostic(diagnostic));
  }
  return target;
}

function title(client: LanguageClient, name: Answering, target: Target): string {
  const file = vscode.workspace.asRelativePath(client.protocol2CodeConverter.asUri(target.textDocument.uri));
  if (!target.range) return `${TITLES[name]} · ${file}`;
  const [first, last] = [target.range.start.line + 1, target.range.end.line + 1];
  return `${TITLES[name]} · ${file}:${first === last ? first : `${first}–${last}`}`;
}
