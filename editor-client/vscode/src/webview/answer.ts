/** The page inside the answer view: renders Markdown as it arrives. Talks to the extension by messages only. */
import hljs from 'highlight.js/lib/core';
import bash from 'highlight.js/lib/languages/bash';
import diff from 'highlight.js/lib/languages/diff';
import json from 'highlight.js/lib/languages/json';
import python from 'highlight.js/lib/languages/python';
import MarkdownIt from 'markdown-it';
import type { FromView, ToView } from '../answerView';

declare function acquireVsCodeApi(): { postMessage(message: FromView): void };

for (const [name, language] of Object.entries({ bash, diff, json, python })) hljs.registerLanguage(name, language);

const vscode = acquireVsCodeApi();
const send = (message: FromView) => vscode.postMessage(message);
const element = (id: string) => document.getElementById(id) as HTMLElement;

// html: false, so that nothing in an answer becomes an element of this page.
const markdown = new MarkdownIt({
  html: false,
  highlight: (code, language) =>
    hljs.getLanguage(language) ? hljs.highlight(code, { language, ignoreIllegals: true }).value : '',
});
const THOUGHT = /<think>([\s\S]*?)(?:<\/think>|$)/g;

let text = '';
let writing = false;
let due = false;

function button(label: string, run: () => void): HTMLButtonElement {
  const made = document.createElement('button');
  made.textContent = label;
  made.addEventListener('click', run);
  return made;
}

/** Thoughts are folded; everything else is Markdown. */
function render(): void {
  due = false;
  const answer = element('answer');
  const open = new Set([...answer.querySelectorAll('details[open]')].map((_, index) => index));
  answer.replaceChildren();
  let end = 0;
  let thoughts = 0;
  for (const found of text.matchAll(THOUGHT)) {
    section(text.slice(end, found.index));
    const details = document.createElement('details');
    details.open = open.has(thoughts++);
    const summary = document.createElement('summary');
    summary.textContent = 'Thoughts';
    const body = document.createElement('div');
    body.innerHTML = markdown.render(found[1]);
    details.append(summary, body);
    answer.append(details);
    end = found.index + found[0].length;
  }
  section(text.slice(end));
  if (!writing) codeButtons();
}

function section(source: string): void {
  if (!source.trim()) return;
  const made = document.createElement('section');
  made.innerHTML = markdown.render(source);
  element('answer').append(made);
}

function codeButtons(): void {
  for (const block of document.querySelectorAll('section pre')) {
    const code = block.textContent ?? '';
    const bar = document.createElement('div');
    bar.className = 'code-actions';
    bar.append(
      button('Copy', () => send({ type: 'copy', text: code })),
      button('Insert', () => send({ type: 'insert', text: code })),
    );
    block.before(bar);
  }
}

function show(actions: HTMLButtonElement[], state: string): void {
  element('actions').replaceChildren(...actions);
  element('state').textContent = state;
}

function receive(message: ToView): void {
  switch (message.type) {
    case 'begin':
      text = '';
      writing = true;
      element('empty').hidden = true;
      (document.querySelector('header') as HTMLElement).hidden = false;
      element('title').textContent = message.title;
      show([button('Stop', () => send({ type: 'stop' }))], 'Thinking…');
      render();
      return;
    case 'text':
      text += message.text;
      element('state').textContent = '';
      if (!due) requestAnimationFrame(render);
      due = true;
      return;
    case 'end':
      writing = false;
      finish(message);
  }
}

function finish({ state, message, proposal }: Extract<ToView, { type: 'end' }>): void {
  const copy = button('Copy', () => send({ type: 'copy', text }));
  const again = button('Ask again', () => send({ type: 'again' }));
  const decide = [
    button('Apply', () => send({ type: 'apply' })),
    button('Discard', () => send({ type: 'discard' })),
  ];
  const says = { done: '', stopped: 'Stopped.', failed: message ?? 'Failed.' }[state];
  show([...(proposal ? decide : []), ...(text ? [copy] : []), again], says);
  document.body.dataset.state = state;
  render();
}

window.addEventListener('message', ({ data }: MessageEvent<ToView>) => receive(data));
send({ type: 'ready' });
