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
			"Without a command, it starts the kernel and opens a chat. If a kernel is already running,\nit only opens a chat.",
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
	cell := root.PersistentFlags().String("cell", "", "the cell of a cluster to work on (default: that of the home)")
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		if *cell == "" || c.Flags().Lookup("cell").Value != root.PersistentFlags().Lookup("cell").Value {
			return nil
		}
		return leadToCell(*cell)
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if m := wrongValue.FindStringSubmatch(err.Error()); m != nil {
			wanted := "a whole number"
			if m[3] == "time" {
				wanted = "a duration, such as 20m or 1h30m"
			}
			err = fmt.Errorf("%s %s: give %s", m[2], m[1], wanted)
		}
		return fmt.Errorf("%w; `%s --help` lists the flags", err, c.CommandPath())
	})
	root.AddGroup(&cobra.Group{ID: "main", Title: "Start:"}, &cobra.Group{ID: "manage", Title: "Manage:"},
		&cobra.Group{ID: "find", Title: "Inspect:"})
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("main", newSetupCommand(), newRunCommand(), newChatCommand(), newWebCommand(), newStatusCommand(),
		newDoctorCommand())
	add("manage", newChannelsCommand(), newPairingCommand(), newPeopleCommand(), newGroupsCommand(), newApprovalsCommand(),
		newAgentsCommand(), newModelsCommand(),
		newExtensionsCommand(), newSessionsCommand(), newSchedulesCommand(), newTasksCommand(), newLinksCommand(),
		newMemoryCommand(), newMCPCommand(), newTokensCommand(),
		newConfigCommand(), newServiceCommand(), newBackupCommand(), newClusterCommand(), newCellsCommand())
	add("find", newEventsCommand(), newTraceCommand(), newLogsCommand(), newUsageCommand())
	root.AddCommand(&cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		Run: func(c *cobra.Command, _ []string) { printerOf(c).line("%s version %s", root.Name(), version) },
	})
	root.SetHelpCommand(newHelpCommand())
	strict(root)
	return root
}

// group makes a command with subcommands.
func group(use, short string, verbs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short}
	c.AddCommand(verbs...)
	return c
}

func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [command]", Short: "Help about a command",
		RunE: func(c *cobra.Command, args []string) error {
			about, rest, err := c.Root().Find(args)
			if len(rest) > 0 {
				return unknownCommand(about, rest[0])
			}
			if err != nil {
				return err
			}
			return about.Help()
		},
	}
}

// strict makes an unknown subcommand an error instead of a help text, and adds the usage to
// errors about arguments.
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
				return fmt.Errorf("%w; usage: %s", plainly(err, args), c.UseLine())
			}
			return nil
		}
	}
}

var (
	wantedArguments = regexp.MustCompile(`^(?:accepts|requires).* (\d+) arg\(s\),.* received (\d+)$`)
	wrongValue      = regexp.MustCompile(`^invalid argument ("(?:.*)") for "(?:.*)(--[a-z-]+)" flag: (strconv|time)`)
)

// plainly rewrites cobra's errors about arguments for people.
func plainly(err error, args []string) error {
	if strings.HasPrefix(err.Error(), "unknown command") { // the command takes no arguments
		return fmt.Errorf("unexpected argument %q", args[0])
	}
	m := wantedArguments.FindStringSubmatch(err.Error())
	if m == nil {
		return err
	}
	wanted, _ := strconv.Atoi(m[1])
	if len(args) > wanted {
		return fmt.Errorf("unexpected argument %q", args[wanted])
	}
	return errors.New("an argument is missing")
}

// message returns the text of an error for people, without sentinels that repeat it.
func message(err error) string {
	text := err.Error()
	for _, sentinel := range []error{
		contract.ErrNotFound, contract.ErrInvalid, contract.ErrUnavailable, contract.ErrDenied, contract.ErrTooLarge,
		contract.ErrGone,
		contract.ErrStale, contract.ErrFull,
	} {
		if errors.Is(err, sentinel) {
			text = strings.ReplaceAll(text, sentinel.Error()+": ", "")
			text = strings.TrimSuffix(text, ": "+sentinel.Error())
		}
	}
	return text
}

// openHome opens or creates the home that the environment names.
func openHome() (*config.Home, error) { return config.OpenHome(os.LookupEnv) }

// findHome returns that home for commands that only read it or need a kernel. It need not
// exist.
func findHome() (*config.Home, error) { return config.FindHome(os.LookupEnv) }
