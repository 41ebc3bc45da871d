"""`holdfast completion`: let a shell complete commands and keys."""

import click

from holdfast.cli.app import App
from holdfast.cli.command import command as make

_WHERE = {
    "bash": 'put  eval "$(holdfast completion bash)"  into ~/.bashrc',
    "zsh": 'put  eval "$(holdfast completion zsh)"  into ~/.zshrc, behind compinit',
    "fish": "holdfast completion fish > ~/.config/fish/completions/holdfast.fish",
}


@make(
    "completion",
    epilog="To install:\n\n\b\n" + "\n".join(f"{shell}  {how}" for shell, how in _WHERE.items()),
)
@click.argument("shell", type=click.Choice(list(_WHERE)))
def command(app: App, shell: str) -> None:
    """Print what makes a shell complete commands, options and the keys of conversations."""
    from holdfast.cli.completing import source

    app.screen.print(source(shell, click.get_current_context().find_root().command))
    if app.screen.is_terminal:
        app.screen.note(f"To install: {_WHERE[shell]}")
