# bash completion for tb. Add to ~/.bashrc:  source <(tb completion bash)
_tb() {
	local candidate
	while IFS=$'\t' read -r candidate _; do
		# Bash has taken the = of --flag=value for the end of a word.
		[[ ${COMP_WORDS[COMP_CWORD]} == *?=* ]] || candidate=${candidate#--*=}
		COMPREPLY+=("$candidate")
	done < <(tb complete "${COMP_WORDS[@]:1:COMP_CWORD}")
}
complete -o default -F _tb tb
