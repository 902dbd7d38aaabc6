package directory

import "slices"

// Command is a slash command that people can use in every conversation, also
// while a turn runs there.
type Command struct {
	Name        string
	Arguments   string // as people see them; of the kernel's own commands only
	Description string // for people, in a line
	Extension   string // that handles it; empty: the kernel itself
	Title       string // of the extension, as shown to people
	State       string // of its process
}

// builtin are the commands that the kernel itself answers.
var builtin = []Command{
	{Name: "new", Description: "start a new conversation"},
	{Name: "stop", Description: "stop what I am doing"},
	{Name: "agent", Arguments: " [name]", Description: "show or choose the agent that answers here"},
	{Name: "model", Arguments: " [name]", Description: "show or choose the language model that answers here"},
	{Name: "status", Description: "show what is running"},
	{Name: "questions", Description: "list questions waiting for your answer; /answer, /approve and /deny answer them"},
	{Name: "sethome", Description: "get reminders and notices here"},
	{Name: "household", Arguments: " [off]", Description: "share your memories and reminders with this group"},
	{Name: "help", Description: "show this list"},
}

// otherNames are further names of commands of the kernel. Some platforms send
// /start when a user opens the conversation.
var otherNames = []string{"start", "answer", "approve", "deny"}

// Builtin returns the commands that the kernel itself answers, for people in
// the order of their use.
func Builtin() []Command { return slices.Clone(builtin) }

// IsBuiltin reports whether the kernel itself answers a command, so that no
// extension can have it.
func IsBuiltin(name string) bool {
	isBuiltin := func(c Command) bool { return c.Name == name }
	return slices.Contains(otherNames, name) || slices.ContainsFunc(builtin, isBuiltin)
}

// Command is the command of an extension by its name; nil if there is none.
func (s *Snapshot) Command(name string) *Command {
	return find(s.Commands, func(c *Command) bool { return c.Name == name })
}
