#compdef {binary}
# Completion for zsh. The program that is typed is the one that is asked.
_complete_{binary}() {{
    local -a candidates
    candidates=(${{(f)"$(${{~words[1]}} --complete -- "${{(@)words[1,CURRENT]}}" 2>/dev/null)"}})
    if (( $#candidates )); then
        compadd -a candidates
    else
        _files
    fi
}}
(( $+functions[compdef] )) || {{ autoload -Uz compinit && compinit -u }}
compdef _complete_{binary} {binary}
