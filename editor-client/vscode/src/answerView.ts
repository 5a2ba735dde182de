/** The side view that shows an answer while it is written. Knows the webview's messages; nothing of the server. */
import { randomBytes } from 'node:crypto';
import * as vscode from 'vscode';

export type ToView =
  | { type: 'begin'; title: string }
  | { type: 'text'; text: string }
  | { type: 'end'; state: 'done' | 'stopped' | 'failed'; message?: string; proposal: boolean };
export type FromView =
  | { type: 'ready' | 'stop' | 'again' | 'apply' | 'discard' }
  | { type: 'copy' | 'insert'; text: string };

export class AnswerView implements vscode.WebviewViewProvider, vscode.Disposable {
  static readonly id = 'draftwood.answer';
  private readonly asked = new vscode.EventEmitter<'stop' | 'again'>();
  /** The user wants the running answer stopped, or the last question asked again. */
  readonly onDidAsk = this.asked.event;
  private readonly registration: vscode.Disposable;
  private view: vscode.WebviewView | undefined;
  private shown: ToView[] = [];
  private loaded = false;

  constructor(private readonly media: vscode.Uri) {
    this.registration = vscode.window.registerWebviewViewProvider(AnswerView.id, this, {
      webviewOptions: { retainContextWhenHidden: true },
    });
  }

  async begin(title: string): Promise<void> {
    this.shown = [];
    await vscode.commands.executeCommand(`${AnswerView.id}.focus`, { preserveFocus: true });
    this.post({ type: 'begin', title });
  }

  add(text: string): void {
    this.post({ type: 'text', text });
  }

  end(state: 'done' | 'stopped' | 'failed', proposal: boolean, message?: string): void {
    this.post({ type: 'end', state, message, proposal });
  }

  /** Kept until the page is there: it may load after the first words, and again after it was moved. */
  private post(message: ToView): void {
    this.shown.push(message);
    if (this.loaded) void this.view?.webview.postMessage(message);
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    this.view = view;
    this.loaded = false;
    view.webview.options = { enableScripts: true, localResourceRoots: [this.media] };
    view.webview.onDidReceiveMessage((message: FromView) => this.receive(message));
    view.onDidDispose(() => {
      this.loaded = false;
      this.view = undefined;
    });
    view.webview.html = this.page(view.webview);
  }

  private async receive(message: FromView): Promise<void> {
    switch (message.type) {
      case 'ready':
        this.loaded = true;
        for (const earlier of this.shown) void this.view?.webview.postMessage(earlier);
        return;
      case 'stop':
      case 'again':
        this.asked.fire(message.type);
        return;
      case 'apply':
        await vscode.commands.executeCommand('draftwood.applyProposal');
        return;
      case 'discard':
        await vscode.commands.executeCommand('draftwood.discardProposal');
        return;
      case 'copy':
        await vscode.env.clipboard.writeText(message.text);
        return;
      case 'insert':
        await insert(message.text);
    }
  }

  private page(webview: vscode.Webview): string {
    const nonce = randomBytes(16).toString('base64');
    const asset = (name: string) => webview.asWebviewUri(vscode.Uri.joinPath(this.media, name)).toString();
    const policy = `default-src 'none'; style-src ${webview.cspSource}; script-src 'nonce-${nonce}'`;
    return `<!DOCTYPE html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta http-equiv="Content-Security-Policy" content="${policy}">
  <link rel="stylesheet" href="${asset('answer.css')}">
</head>
<body>
  <header hidden><h1 id="title"></h1><div id="actions" role="toolbar" aria-label="Answer"></div></header>
  <main id="answer" aria-live="polite"></main>
  <p id="state" role="status"></p>
  <p id="empty">Select some code and choose <b>Draftwood</b> from the context menu.</p>
  <script nonce="${nonce}" src="${asset('answer.js')}"></script>
</body>
</html>`;
  }

  dispose(): void {
    vscode.Disposable.from(this.registration, this.asked).dispose();
  }
}

/** Replaces the selection of the editor that the user was in last. */
async function insert(text: string): Promise<void> {
  const editor = vscode.window.activeTextEditor ?? vscode.window.visibleTextEditors[0];
  if (!editor) {
    void vscode.window.showInformationMessage('Open the file that the code should go into first.');
    return;
  }
  await vscode.window.showTextDocument(editor.document, editor.viewColumn);
  await editor.edit((edit) => edit.replace(editor.selection, text));
}
