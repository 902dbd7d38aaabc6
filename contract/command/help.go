package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/words"
)

// maxNamed is how many commands of an extension Help names.
const maxNamed = 3

// Help is the answer to /help: the commands of the kernel, and the names of those of
// extensions, which are sorted by extension; with the name of a command or an
// extension, its descriptions.
func Help(language, about string, extensions []Slash) string {
	say := func(text string, args ...any) string { return words.Say(language, text, args...) }
	if about != "" {
		return describe(say, about, slices.Concat(builtin, extensions))
	}
	var b strings.Builder
	b.WriteString(say("Just write to me. These commands work even while I'm busy:") + "\n")
	for _, c := range builtin {
		fmt.Fprintf(&b, "\n- /%s%s: %s", c.Name, say(c.Arguments), say(c.Description))
	}
	if len(extensions) > 0 {
		b.WriteString("\n\n" + say("Commands of extensions (/help NAME explains one):") + "\n")
	}
	for len(extensions) > 0 {
		c, same := extensions[0], 0
		var names []string
		for ; same < len(extensions) && extensions[same].Extension == c.Extension; same++ {
			if same < maxNamed {
				names = append(names, "/"+extensions[same].Name)
			}
		}
		extensions = extensions[same:]
		failed := ""
		if c.State == contract.StateFailed {
			failed = say(" (has failed)")
		}
		fmt.Fprintf(&b, "\n- %s%s: %s", say(c.Title), failed, strings.Join(names, ", "))
		if more := same - len(names); more > 0 {
			b.WriteString(say(" and %d more (/help %s)", more, c.Extension))
		}
	}
	return b.String()
}

// describe describes a command, or all commands of an extension.
func describe(say func(string, ...any) string, about string, all []Slash) string {
	about = strings.ToLower(strings.TrimPrefix(about, "/"))
	var lines []string
	for _, c := range all {
		if about != c.Name && (c.Extension == "" || about != c.Extension && about != strings.ToLower(c.Title)) {
			continue
		}
		line := fmt.Sprintf("- /%s: %s", c.Name, say(c.Description))
		if c.State == contract.StateFailed {
			line += say(" (%s has failed)", say(c.Title))
		}
		if c.Withheld {
			line += say(" (not allowed by the owner)")
		}
		lines = append(lines, line)
	}
	if lines == nil {
		return say("There is no command or extension named %s. /help lists all commands.", about)
	}
	return strings.Join(lines, "\n")
}
