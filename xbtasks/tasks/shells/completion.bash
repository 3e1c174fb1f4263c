# Completion for bash. The program that is typed is the one that is asked.
_complete_{binary}() {{
    local candidate word=${{COMP_WORDS[COMP_CWORD]}}
    [[ $word == '=' ]] && word=
    COMPREPLY=()
    while IFS= read -r candidate; do
        [[ $candidate == "$word"* ]] && COMPREPLY+=("$candidate")
    done < <("${{COMP_WORDS[0]/#\~/$HOME}}" --complete -- "${{COMP_WORDS[@]:0:COMP_CWORD+1}}" 2>/dev/null)
}}
complete -o default -F _complete_{binary} {binary}
