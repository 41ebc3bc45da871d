"""`holdfast chat`: a conversation on the command line.

    models       who answers: what was named, what the session had, what is found here
    question     what is asked, in words and through a pipe
    talk         one conversation that goes on: a session, a model, turns
    display      what a turn says, as it comes
    interrupts   Ctrl-C
    greeting     what was loaded, and what a turn that was cut off has left
    approvals    calls that wait for a yes or a no
    toolbox      tools from a file of the user's own
    lines        what was typed before
    prompt       the next thing that is said; `editor` with prompt_toolkit, which is an extra
    slash        /new, /model and the others
    interactive  one thing after another, until somebody leaves; `once` is for one question

Nothing of it is imported for `holdfast --help`.
"""
