# zsh completion for tb. Add to ~/.zshrc, after compinit:  source <(tb completion zsh)
_tb() {
	local line candidates=()
	while IFS= read -r line; do
		candidates+=("${line/$'\t'/:}")
	done < <(tb complete "${(@)words[2,CURRENT]}")
	if ((${#candidates})); then
		_describe argument candidates
	else
		compset -P '--*='
		_files
	fi
}
compdef _tb tb
