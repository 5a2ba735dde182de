"""The commands that think before they answer: explain, fix, docstring, tests, edit, reason.

Each lays out a prompt, lets a backend (the local engine or a remote server) write, checks what came and answers with
Markdown and proposed changes. Knows no protocol of editors; changes nothing on disk.
"""
