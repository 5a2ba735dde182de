/** What a click on the status bar item offers. */
import * as vscode from 'vscode';
import type { Draftwood } from './extension';
import { ask } from './python';

interface Entry extends vscode.QuickPickItem {
  run(): Thenable<unknown> | void;
}

export async function showMenu(draftwood: Draftwood): Promise<void> {
  const entries = [...pauses(draftwood), ...actions(draftwood)];
  const chosen = await vscode.window.showQuickPick(entries, { title: 'Draftwood', placeHolder: 'Choose an action' });
  await chosen?.run();
}

function pauses({ pause }: Draftwood): Entry[] {
  const language = vscode.window.activeTextEditor?.document.languageId;
  const here: Entry = {
    label: pause.here ? '$(debug-continue) Resume here' : '$(debug-pause) Pause here',
    description: 'in this workspace',
    run: () => pause.toggleHere(),
  };
  if (!language) return [here];
  const paused = pause.forLanguage(language);
  const label = paused ? `$(debug-continue) Resume for ${language}` : `$(debug-pause) Pause for ${language}`;
  return [here, { label, description: 'in every workspace', run: () => pause.toggleLanguage(language) }];
}

function actions(draftwood: Draftwood): Entry[] {
  const command = (name: string, ...args: unknown[]) => vscode.commands.executeCommand(name, ...args);
  return [
    { label: '$(symbol-misc) Choose model…', run: () => chooseModel(draftwood) },
    { label: '$(debug-restart) Restart server', run: () => draftwood.restart(true) },
    { label: '$(output) Show log', run: () => draftwood.log.show() },
    { label: '$(pulse) Run doctor', description: 'checks this installation', run: () => doctor(draftwood) },
    { label: '$(gear) Settings', run: () => command('workbench.action.openSettings', '@ext:draftwood.draftwood') },
    {
      label: '$(book) Getting started',
      run: () => command('workbench.action.openWalkthrough', 'draftwood.draftwood#start'),
    },
  ];
}

interface Models {
  models: { name: string; provisioned: boolean; default: boolean }[];
}

/** The models that the server knows; any other may be typed as a hub id or a folder. */
async function chooseModel({ program, log }: Draftwood): Promise<void> {
  if (!program) return;
  const configuration = vscode.workspace.getConfiguration('draftwood');
  let known: vscode.QuickPickItem[] = [];
  try {
    const { models } = await ask<Models>(program, 'models', 'list', '--json');
    known = models.map((model) => ({
      label: model.name,
      description: [model.default && 'default', model.provisioned ? 'installed' : 'is downloaded first']
        .filter(Boolean)
        .join(', '),
    }));
  } catch (error) {
    log.warn(`the list of models is not available: ${error}`);
  }
  const other = { label: '$(edit) Another…', detail: 'a hub id or a folder' };
  const chosen = await vscode.window.showQuickPick([...known, other], { title: 'Draftwood: model' });
  const model =
    chosen === other
      ? await vscode.window.showInputBox({ title: 'Draftwood: model', prompt: 'A hub id or a folder' })
      : chosen?.label;
  if (model) await configuration.update('model.name', model, vscode.ConfigurationTarget.Global);
}

function doctor({ program }: Draftwood): void {
  if (!program) return;
  const { command, args } = program;
  vscode.window.createTerminal({ name: 'Draftwood doctor', shellPath: command, shellArgs: [...args, 'doctor'] }).show();
}
