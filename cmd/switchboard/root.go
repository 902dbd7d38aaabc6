package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/home/config"
)

// version is set by the linker for releases.
var version = "0.1.0"

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "switchboard",
		Short: "A personal assistant that loses nothing",
		Long: "Switchboard is a personal assistant: a small kernel, and extensions for everything else.\n\n" +
			"Without a command it starts the kernel and opens a chat; beside a kernel that runs\nalready, it opens a chat with that one.",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(c, args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return startAndChat(c.Context()) },
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if m := wrongValue.FindStringSubmatch(err.Error()); m != nil {
			err = fmt.Errorf("%s %s: give a whole number", m[2], m[1])
		}
		return fmt.Errorf("%w; `%s --help` lists the flags", err, c.CommandPath())
	})
	root.AddGroup(&cobra.Group{ID: "main", Title: "To begin:"}, &cobra.Group{ID: "manage", Title: "To manage:"}, &cobra.Group{ID: "find", Title: "To find out:"})
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("main", newRunCommand(), newChatCommand(), newStatusCommand(), newDoctorCommand())
	add("manage", newChannelsCommand(), newPairingCommand(), newAgentsCommand(), newExtensionsCommand(), newSessionsCommand(), newSchedulesCommand(), newTasksCommand(), newLinksCommand(), newMemoryCommand(), newBackupCommand())
	add("find", newEventsCommand(), newTraceCommand(), newLogsCommand(), newUsageCommand())
	strict(root)
	return root
}

// group is a noun whose verbs are commands of their own.
func group(use, short string, verbs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short}
	c.AddCommand(verbs...)
	return c
}

// strict makes a noun without a known verb an error instead of a help text, and
// says of every wrong number of arguments how the command is used.
func strict(c *cobra.Command) {
	for _, child := range c.Commands() {
		strict(child)
	}
	if c.HasSubCommands() && !c.Runnable() {
		c.Args = cobra.ArbitraryArgs
		c.RunE = func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.Help()
			}
			return unknownCommand(c, args[0])
		}
		return
	}
	if check := c.Args; check != nil && c.HasParent() {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return fmt.Errorf("%w; the command is used like this: %s", plainly(err, args), c.UseLine())
			}
			return nil
		}
	}
}

var (
	wantedArguments = regexp.MustCompile(`^(?:accepts|requires).* (\d+) arg\(s\),.* received (\d+)$`)
	wrongValue      = regexp.MustCompile(`^invalid argument ("(?:.*)") for "(?:.*)(--[a-z-]+)" flag: strconv`)
)

// plainly says what cobra finds wrong about arguments in words for people.
func plainly(err error, args []string) error {
	if strings.HasPrefix(err.Error(), "unknown command") { // of a command that takes none
		return fmt.Errorf("%q is too much", args[0])
	}
	m := wantedArguments.FindStringSubmatch(err.Error())
	if m == nil {
		return err
	}
	wanted, _ := strconv.Atoi(m[1])
	if len(args) > wanted {
		return fmt.Errorf("%q is too much", args[wanted])
	}
	return errors.New("something is missing")
}

func unknownCommand(c *cobra.Command, name string) error {
	hint := fmt.Sprintf("`%s --help` lists those there are", c.CommandPath())
	c.SuggestionsMinimumDistance = 2
	if near := c.SuggestionsFor(name); len(near) > 0 {
		hint = fmt.Sprintf("did you mean `%s %s`?", c.CommandPath(), near[0])
	}
	return fmt.Errorf("%s has no command %q: %s", c.CommandPath(), name, hint)
}

// message is an error as a person reads it: without the sentinels that only
// programs decide on, where the sentence says it anyway.
func message(err error) string {
	text := err.Error()
	for _, sentinel := range []error{
		contract.ErrNotFound, contract.ErrInvalid, contract.ErrUnavailable, contract.ErrDenied, contract.ErrTooLarge, contract.ErrGone,
		contract.ErrStale, contract.ErrFull,
	} {
		if errors.Is(err, sentinel) {
			text = strings.ReplaceAll(text, sentinel.Error()+": ", "")
			text = strings.TrimSuffix(text, ": "+sentinel.Error())
		}
	}
	return text
}

// openHome is the home that the environment names, made if it is not there.
func openHome() (*config.Home, error) { return config.OpenHome(os.LookupEnv) }

// findHome is that home for commands that only look, or need a kernel: it may
// not be there.
func findHome() (*config.Home, error) { return config.FindHome(os.LookupEnv) }
