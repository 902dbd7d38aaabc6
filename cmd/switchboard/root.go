package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/extensions/clichannel/terminal"
	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
	"github.com/switchboard-run/switchboard/kernel"
	"github.com/switchboard-run/switchboard/kernel/config"
	"github.com/switchboard-run/switchboard/manifests"
)

// version is set by the linker for releases.
var version = "0.1.0"

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "switchboard",
		Short:         "A personal assistant that loses nothing",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return startAndChat(c.Context()) },
	}
	root.AddCommand(newRunCommand(), newChatCommand())
	return root
}

func newRunCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "run",
		Short: "Run the kernel until it is interrupted",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			home, err := config.OpenHome(os.LookupEnv)
			if err != nil {
				return err
			}
			k, err := openKernel(c.Context(), home)
			if err != nil {
				return err
			}
			defer func() { _ = k.Close() }()
			return k.Run(c.Context())
		},
	}
}

func openKernel(ctx context.Context, home *config.Home) (*kernel.Kernel, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the own executable: %w", err)
	}
	return kernel.Open(ctx, kernel.Options{
		Home: home, Version: version, Env: os.LookupEnv, Environ: os.Environ(),
		Builtins: manifests.FS, BuiltinsPrefix: manifests.Prefix,
		Builtin: func(members []string) []string { return append([]string{self, extensionCommand}, members...) },
	})
}

func newChatCommand() *cobra.Command {
	var o terminal.Options
	c := &cobra.Command{
		Use:   "chat",
		Short: "Talk to a running kernel",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			home, err := config.OpenHome(os.LookupEnv)
			if err != nil {
				return err
			}
			return chat(c.Context(), home, o)
		},
	}
	c.Flags().StringVar(&o.Agent, "agent", "", "the agent that shall answer")
	c.Flags().StringVar(&o.Conversation, "session", "", "go on with a session")
	c.Flags().BoolVar(&o.New, "new", false, "begin a conversation of its own")
	c.MarkFlagsMutuallyExclusive("session", "new")
	return c
}

func chat(ctx context.Context, home *config.Home, o terminal.Options) error {
	o.Socket = filepath.Join(home.RuntimeDir(), wire.SocketName)
	o.HistoryFile = filepath.Join(home.Path(), "history")
	return terminal.Run(ctx, o)
}

// startAndChat is what a new user runs: the kernel and a chat in one process,
// or only the chat if a kernel is running already.
func startAndChat(ctx context.Context) error {
	home, err := config.OpenHome(os.LookupEnv)
	if err != nil {
		return err
	}
	in := os.Stdin // the kernel takes it from extensions
	k, err := openKernel(ctx, home)
	if errors.Is(err, kernel.ErrRunning) {
		return chat(ctx, home, terminal.Options{In: in})
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	chatErr := chat(ctx, home, terminal.Options{In: in, NoSuspend: true})
	cancel()
	return errors.Join(chatErr, <-done, k.Close())
}
