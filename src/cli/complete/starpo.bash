# Completion of starpo for bash: words, and values after `=`, at which bash would begin another word.
_starpo() {
    local line=${COMP_LINE:0:COMP_POINT} word cut
    local -a words
    read -ra words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    word=${words[${#words[@]} - 1]}
    mapfile -t COMPREPLY < <("${words[0]}" complete -- "${words[@]:1}" 2>/dev/null)
    if [[ $word == *=* && $COMP_WORDBREAKS == *=* ]]; then
        cut=${word%%=*}=
        COMPREPLY=("${COMPREPLY[@]#"$cut"}")
    fi
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
    return 0
}
complete -o default -F _starpo starpo
