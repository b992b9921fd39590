# fish completion for tb. Add to ~/.config/fish/config.fish:  tb completion fish | source
function __tb_candidates
	set -l word (commandline -ct)
	set -l words (commandline -opc) $word
	set -l candidates (tb complete $words[2..])
	if test -n "$candidates"
		printf '%s\n' $candidates
	else
		set -l flag (string match -r -- '^--[^=]*=' $word; or echo)
		printf '%s\n' $flag(__fish_complete_path (string replace -- "$flag" '' $word))
	end
end
complete -c tb -f -a '(__tb_candidates)'
