#compdef starpo
# Completion of starpo for zsh.
_starpo() {
    local -a found paths
    found=("${(@f)$(${words[1]} complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    paths=(${(M)found:#*=})
    found=(${found:#*=})
    (( $#paths )) && compadd -Q -S '' -- $paths
    (( $#found )) && compadd -Q -- $found
    (( $#paths + $#found )) || _files
}
if [[ $funcstack[1] == _starpo ]]; then _starpo "$@"; else compdef _starpo starpo; fi
