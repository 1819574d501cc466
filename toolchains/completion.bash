# Completion of fovea's verbs and options for bash. The program's own help is where they come from.
_fovea() {
    local word=${COMP_WORDS[COMP_CWORD]} program=${COMP_WORDS[0]} words
    if ((COMP_CWORD == 1)); then
        words=$("$program" --help 2>/dev/null | sed -n '/^Subcommands:/,$s/^  \([a-z]\+\) .*/\1/p')
        mapfile -t COMPREPLY < <(compgen -W "$words --help --version" -- "$word")
    elif [[ $word == -* ]]; then
        words=$("$program" "${COMP_WORDS[1]}" --help 2>/dev/null | grep -oE '^  -[^ ]*' | grep -oE -- '--?[a-z-]+')
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
    fi
}
complete -o default -F _fovea fovea
