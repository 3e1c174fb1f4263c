# Completion for fish. The program that is typed is the one that is asked.
function __complete_{binary}
    set -l before (commandline --current-process --tokenize --cut-at-cursor)
    set -l word (commandline --current-token --cut-at-cursor)
    set -l candidates ($before[1] --complete -- $before "$word" 2>/dev/null)
    if set -q candidates[1]
        printf '%s\n' $candidates
    else
        __fish_complete_path "$word"
    end
end
complete --command {binary} --no-files --arguments '(__complete_{binary})'
