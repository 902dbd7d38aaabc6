package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/extensions/clichannel/terminal"
	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// startingTime bounds how long a chat waits for a kernel that is starting.
const startingTime = 2 * time.Second

func newChatCommand() *cobra.Command {
	var o terminal.Options
	var session string
	c := &cobra.Command{
		Use:   "chat",
		Short: "Talk to a running kernel",
		Long: "Opens a chat with the running kernel. All chats share one conversation, unless you give --new or\n" +
			"--session.\n\n" +
			"/attach PATH attaches files to the next message, and a file that is dropped on the terminal is\n" +
			"attached too; /detach removes them. /save FILE [PATH] saves a file of the conversation, by the digits\n" +
			"that it is named with.\n\n" +
			"Without a terminal it is a filter: every line of the input is a message, and the output has the\n" +
			"answers. With --json each answer is an object with the id of its session, for --session.",
		Example: "  switchboard chat\n  switchboard chat --new --agent echo\n  echo 'list reminders' | switchboard chat\n" +
			"  echo 'and now?' | switchboard chat --session s7 --json",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.New && session != "" {
				return errors.New("open a chat: --session continues a conversation, --new starts one: use only one of them")
			}
			home, err := findHome()
			if err != nil {
				return err
			}
			k, err := awaitKernel(c.Context(), home)
			if err != nil {
				return fmt.Errorf("open a chat: %w", err)
			}
			defer k.Close()
			if err := resume(c.Context(), k, session, &o); err != nil {
				return fmt.Errorf("open a chat: %w", err)
			}
			if o.Agent != "" {
				if err := knownAgent(c.Context(), k, o.Agent); err != nil {
					return fmt.Errorf("open a chat: %w", err)
				}
			}
			o.Greeting, o.Hint = greetingOf(c.Context(), home)
			return chat(c.Context(), home, o)
		},
	}
	c.Flags().StringVar(&o.Agent, "agent", "", "the agent to talk to")
	c.Flags().StringVar(&session, "session", "", "continue a conversation: a session's id, or a name")
	c.Flags().BoolVar(&o.New, "new", false, "start a new conversation")
	c.Flags().BoolVar(&o.JSON, "json", false, "read lines and write JSON, one object for each answer, with its session")
	completeFlag(c, "agent", agentIDs)
	completeFlag(c, "session", sessionIDs)
	return c
}

func chatSocket(h *config.Home) string { return filepath.Join(h.RuntimeDir(), wire.SocketName) }

func chatToken(h *config.Home) string {
	return filepath.Join(h.Path(), "data", "cli_channel", wire.TokenName)
}

func chat(ctx context.Context, home *config.Home, o terminal.Options) error {
	o.Socket, o.TokenFile = chatSocket(home), chatToken(home)
	o.HistoryFile = filepath.Join(home.Path(), "history")
	if settings, err := config.Load(home.Config()); err == nil { // the kernel checks it again
		o.MaxFile = int64(settings.Files.File)
	}
	o.Language, _, _ = strings.Cut(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_MESSAGES"), os.Getenv("LANG")), ".")
	err := terminal.Run(ctx, o)
	if errors.Is(err, terminal.ErrNoKernel) {
		return fmt.Errorf("%w; `switchboard status` shows the state of the kernel, `switchboard logs cli_channel` why it "+
			"takes no chats", err)
	}
	return err
}

// greetingOf returns the greeting of a chat with the kernel on the home, and the hint below.
func greetingOf(ctx context.Context, home *config.Home) (text, hint string) {
	k, err := dial(ctx, home)
	if err != nil {
		return "", ""
	}
	defer k.Close()
	s, err := k.Status(ctx, &adminv1.StatusRequest{})
	if err != nil {
		return "", ""
	}
	return greeting(s.Models), setupHint(s.Models)
}

// setupHint names `switchboard setup` while there is no language model.
func setupHint(models []string) string {
	if len(models) > 0 && models[0] != offlineModel {
		return ""
	}
	return "`switchboard setup` connects a language model and Telegram"
}

// greeting tells which model answers.
func greeting(models []string) string {
	switch {
	case len(models) == 0:
		return "no model is configured"
	case models[0] == offlineModel:
		return "offline model: type help or /help"
	}
	return strings.TrimSuffix(models[0], "/*") + " answers"
}

// awaitKernel retries dial for startingTime, for scripts that start both.
func awaitKernel(ctx context.Context, home *config.Home) (*admin.Client, error) {
	limit := time.Now().Add(startingTime)
	for {
		k, err := dial(ctx, home)
		if !errors.Is(err, admin.ErrNotRunning) || time.Now().After(limit) {
			return k, err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func knownAgent(ctx context.Context, k *admin.Client, id string) error {
	dir, err := k.Directory(ctx, &adminv1.DirectoryRequest{})
	if err != nil {
		return err
	}
	for _, a := range dir.GetAgents() {
		switch {
		case a.Id == id && a.Enabled:
			return nil
		case a.Id == id:
			return fmt.Errorf("the agent %s is not enabled: add it to agents.enabled in config.yaml", id)
		}
	}
	return fmt.Errorf("there is no agent %q; `switchboard agents list` lists them", id)
}

// resume continues a session: an id selects its conversation and agent; anything else is
// the name of a conversation.
func resume(ctx context.Context, k *admin.Client, session string, o *terminal.Options) error {
	if journal.ParseSessionID(session) == 0 {
		o.Conversation = session
		return nil
	}
	s, err := admin.Session(ctx, k, session)
	switch {
	case err != nil:
		return hinted(err, "switchboard sessions list")
	case s.Channel != "cli_channel":
		return fmt.Errorf("session %s (%s) isn't a terminal conversation, so it can't continue here; `switchboard sessions "+
			"show %s` reads it", session, s.Key, session)
	case s.Ended:
		return fmt.Errorf("session %s was ended with /new; the conversation continues with `switchboard chat --session %s`",
			session, s.Conversation)
	case o.Agent != "" && o.Agent != s.Agent:
		return fmt.Errorf("session %s is one of the agent %s: leave --agent out, or give --session %s to talk to %s there",
			session, s.Agent, s.Conversation, o.Agent)
	}
	o.Conversation, o.Agent = s.Conversation, s.Agent
	return nil
}
