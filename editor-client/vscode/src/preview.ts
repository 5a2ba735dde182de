/** Shows a proposed change as a diff and applies it once the user says yes. Knows editors; nothing of the server. */
import * as vscode from 'vscode';

export const PROPOSED = 'draftwood-proposed';
const EMPTY = vscode.Uri.from({ scheme: PROPOSED, path: '/empty' });

interface Proposal {
  edit: vscode.WorkspaceEdit;
  first: vscode.Uri | undefined;
  /** The documents' versions when the change was computed: it fits no other text. */
  versions: Map<string, number>;
  shown: vscode.Uri[];
}

export class Preview implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly subscriptions: vscode.Disposable[];
  private proposal: Proposal | undefined;
  private serial = 0;

  constructor() {
    this.subscriptions = [
      vscode.workspace.registerTextDocumentContentProvider(PROPOSED, this),
      vscode.commands.registerCommand('draftwood.applyProposal', () => this.apply()),
      vscode.commands.registerCommand('draftwood.discardProposal', () => this.discard()),
      this.changed,
    ];
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.path) ?? '';
  }

  /** Opens one diff editor per changed file. `versions` are those of the documents that the server saw. */
  async propose(edit: vscode.WorkspaceEdit, versions: Map<string, number>): Promise<void> {
    await this.discard();
    this.proposal = { edit: new vscode.WorkspaceEdit(), first: edit.entries()[0]?.[0], versions, shown: [] };
    this.serial += 1;
    for (const [uri, edits] of edit.entries()) {
      const document = await opened(uri);
      const text = applied(document, edits);
      // A new file is made with its contents, or VS Code would leave it unsaved and ask for a name.
      if (document) this.proposal.edit.set(uri, edits);
      else this.proposal.edit.createFile(uri, { contents: Buffer.from(text) });
      const proposed = vscode.Uri.from({ scheme: PROPOSED, path: `/${this.serial}${uri.path}` });
      this.texts.set(proposed.path, text);
      this.proposal.shown.push(proposed);
      const name = vscode.workspace.asRelativePath(uri);
      const left = document ? uri : EMPTY;
      await vscode.commands.executeCommand('vscode.diff', left, proposed, `Draftwood: ${name} (proposed)`, {
        preview: false,
      });
    }
    await vscode.commands.executeCommand('setContext', 'draftwood.proposal', true);
  }

  private async apply(): Promise<void> {
    const proposal = this.proposal;
    if (!proposal) return;
    const stale = vscode.workspace.textDocuments.find((document) => {
      const version = proposal.versions.get(document.uri.toString());
      return version !== undefined && version !== document.version;
    });
    if (stale) {
      const name = vscode.workspace.asRelativePath(stale.uri);
      void vscode.window.showWarningMessage(`${name} has changed since this was proposed. Ask again.`);
      return;
    }
    await this.discard();
    if (!(await vscode.workspace.applyEdit(proposal.edit))) {
      void vscode.window.showErrorMessage('The change could not be applied. Ask again.');
      return;
    }
    if (proposal.first) await vscode.window.showTextDocument(proposal.first);
  }

  private async discard(): Promise<void> {
    const shown = new Set(this.proposal?.shown.map((uri) => uri.toString()));
    this.proposal = undefined;
    this.texts.clear();
    await vscode.commands.executeCommand('setContext', 'draftwood.proposal', false);
    const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
    const ours = tabs.filter(
      (tab) => tab.input instanceof vscode.TabInputTextDiff && shown.has(tab.input.modified.toString()),
    );
    if (ours.length > 0) await vscode.window.tabGroups.close(ours);
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
  }
}

/** The document, or undefined where the change creates it. */
async function opened(uri: vscode.Uri): Promise<vscode.TextDocument | undefined> {
  const known = vscode.workspace.textDocuments.find((document) => document.uri.toString() === uri.toString());
  if (known) return known;
  return vscode.workspace.fs.stat(uri).then(
    () => vscode.workspace.openTextDocument(uri),
    () => undefined,
  );
}

function applied(document: vscode.TextDocument | undefined, edits: vscode.TextEdit[]): string {
  if (!document) return edits.map((edit) => edit.newText).join('');
  const last = [...edits].sort((a, b) => b.range.start.compareTo(a.range.start));
  return last.reduce(
    (text, { range, newText }) =>
      text.slice(0, document.offsetAt(range.start)) + newText + text.slice(document.offsetAt(range.end)),
    document.getText(),
  );
}
