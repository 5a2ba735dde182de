/** Where the user wants no suggestions for now. Kept per workspace and per language; knows no server. */
import * as vscode from 'vscode';

const HERE = 'draftwood.paused';
const LANGUAGES = 'draftwood.pausedLanguages';

export class Pause {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changed.event;

  constructor(
    private readonly workspace: vscode.Memento,
    private readonly everywhere: vscode.Memento,
  ) {}

  get here(): boolean {
    return this.workspace.get(HERE, false);
  }

  forLanguage(language: string): boolean {
    return this.everywhere.get<string[]>(LANGUAGES, []).includes(language);
  }

  covers(document: vscode.TextDocument | undefined): boolean {
    return this.here || (document !== undefined && this.forLanguage(document.languageId));
  }

  async toggleHere(): Promise<void> {
    await this.workspace.update(HERE, !this.here);
    this.changed.fire();
  }

  async toggleLanguage(language: string): Promise<void> {
    const others = this.everywhere.get<string[]>(LANGUAGES, []).filter((name) => name !== language);
    await this.everywhere.update(LANGUAGES, this.forLanguage(language) ? others : [...others, language]);
    this.changed.fire();
  }
}
