package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// otherWords are words that people type for a command; those of its subcommands are
// under their names.
var otherWords = map[string]string{
	"run":        "start serve server daemon kernel up",
	"chat":       "ask say talk tell message",
	"status":     "info state ps",
	"doctor":     "check diagnose health fix test",
	"setup":      "init configure login onboard wizard install",
	"service":    "stop enable disable systemd launchd autostart",
	"schedules":  "reminders reminder remind alarms alarm timers timer cron",
	"memory":     "memories remember notes note facts fact forget",
	"models":     "llm providers provider",
	"channels":   "send notify telegram slack discord",
	"pairing":    "pair approve invite",
	"people":     "users user person persons accounts account members roles",
	"config":     "settings",
	"backup":     "restore export save",
	"extensions": "plugins plugin addons restart",
	"usage":      "cost costs money spend spending tokens price prices",
	"trace":      "why follow",
	"events":     "dead queue",
	"list":       "ls show all get search find",
	"show":       "get print view cat list",
	"add":        "new create set remember",
	"edit":       "change update move set",
	"cancel":     "delete remove rm stop kill",
	"forget":     "delete remove rm",
	"delete":     "remove rm",
	"approve":    "add allow accept",
	"revoke":     "remove delete deny ban block rm",
	"restart":    "reload reset",
	"create":     "make now new",
	"role":       "promote demote block ban",
	"unlink":     "split separate link",
}

// unknownCommand is the error for a command that doesn't exist, with the likeliest one.
func unknownCommand(c *cobra.Command, name string) error {
	hint := fmt.Sprintf("see `%s --help`", c.CommandPath())
	if meant := likeliest(c, name); meant != "" {
		hint = fmt.Sprintf("did you mean `%s %s`?", c.CommandPath(), meant)
	}
	return fmt.Errorf("%s has no command %q: %s", c.CommandPath(), name, hint)
}

// likeliest is the subcommand that a wrong name means; empty: none is likely.
func likeliest(c *cobra.Command, name string) string {
	name = strings.ToLower(name)
	c.SuggestionsMinimumDistance = 2
	near := c.SuggestionsFor(name)
	slices.SortStableFunc(near, func(a, b string) int { // names that begin with it come first
		return -cmp.Compare(len(prefix(a, name)), len(prefix(b, name)))
	})
	for _, sub := range c.Commands() {
		if slices.Contains(strings.Fields(otherWords[sub.Name()]), name) {
			return sub.Name()
		}
	}
	if len(near) > 0 {
		return near[0]
	}
	return ""
}

// prefix returns the common beginning of two words.
func prefix(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return a[:n]
}
