package command

import (
	"regexp"
	"slices"
	"strings"

	"github.com/switchboard-run/switchboard/contract/kernelv1"
)

// Slash is a slash command that people can use in every conversation, also while a
// turn runs there.
type Slash struct {
	Name        string
	Arguments   string // as people see them; of the kernel's own commands only
	Description string // for people, in a line
	Extension   string // that handles it; empty: the kernel itself
	Title       string // of the extension, as shown to people
	State       string // of its process
	Withheld    bool   // the owner has not allowed its tool as the extension describes it now
}

// builtin are the commands that the kernel itself answers.
var builtin = []Slash{
	{Name: "new", Description: "start a new conversation"},
	{Name: "stop", Arguments: " [answer]", Description: "stop everything here, or only the running answer"},
	{Name: "agent", Arguments: " [name]", Description: "show or choose the agent that answers here"},
	{Name: "model", Arguments: " [name]", Description: "show or choose the language model that answers here"},
	{Name: "status", Description: "show what is running"},
	{Name: "questions", Description: "list questions waiting for your answer; /answer, /approve and /deny answer them"},
	{Name: "sethome", Description: "get reminders and notices here"},
	{Name: "household", Arguments: " [off]", Description: "share your memories and reminders with this group"},
	{Name: "link", Arguments: " [code]", Description: "use one more account as yourself"},
	{Name: "timezone", Arguments: " [zone]", Description: "show or set your time zone"},
	{Name: "quiet", Arguments: " [22:00-07:00|off]", Description: "get only what you ask for in these hours"},
	{Name: "help", Description: "show this list"},
}

// otherNames are further names of commands of the kernel. Some platforms send
// /start when a user opens the conversation.
var otherNames = []string{"start", "answer", "approve", "deny"}

// Builtin returns the commands that the kernel itself answers, for people in
// the order of their use.
func Builtin() []Slash { return slices.Clone(builtin) }

// Listed are the slash commands as the contract shows them: the kernel's own first. One
// whose extension has failed is still listed: it is answered with that.
func Listed(ofExtensions []Slash) (all []*kernelv1.Command) {
	for _, c := range slices.Concat(builtin, ofExtensions) {
		all = append(all, &kernelv1.Command{Name: c.Name, Description: c.Description})
	}
	return all
}

// IsBuiltin reports whether the kernel itself answers a command, so that no
// extension can have it.
func IsBuiltin(name string) bool {
	isBuiltin := func(c Slash) bool { return c.Name == name }
	return slices.Contains(otherNames, name) || slices.ContainsFunc(builtin, isBuiltin)
}

var slashForm = regexp.MustCompile(`^/([a-z][a-z0-9_]*)(?:\s+([\s\S]*))?$`)

// Parse splits "/name rest". Anything else that begins with a slash (a path, say) is
// text.
func Parse(text string) (name, rest string, ok bool) {
	m := slashForm.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return "", "", false
	}
	return m[1], strings.TrimSpace(m[2]), true
}
