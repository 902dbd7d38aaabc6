package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

func newChannelsCommand() *cobra.Command {
	return group("channels", "Channels: ways to reach you", newChannelsList(), newChannelsSend())
}

func newChannelsList() *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "List the channels and whether they are ready", Args: cobra.NoArgs}
	asJSON := jsonFlag(c)
	c.RunE = withKernel("list the channels", func(c *cobra.Command, k *admin.Client, _ []string) error {
		dir, err := k.Directory(c.Context(), &adminv1.DirectoryRequest{})
		if err != nil {
			return err
		}
		return list(c, *asJSON, admin.Channels(dir), "ID NAME STATUS AGENT DETAIL | AGENT NAME",
			"There are no channels: all of them are disabled in config.yaml.",
			func(_ *printer, x admin.Channel) []cell {
				id := x.ID
				if x.Default {
					id += " (default)"
				}
				return []cell{text(id), text(x.Name), state(x.Status), text(dash(x.Agent)), text(x.Detail)}
			})
	})
	return c
}

func newChannelsSend() *cobra.Command {
	c := &cobra.Command{
		Use:   "send <channel> [text...|-]",
		Short: "Send a text to the default recipient of a channel",
		Long: "Sends a text to the default recipient of a channel: on Telegram the owner's private chat, in the\n" +
			"terminal all open chats. Without a text, or with -, it is read from the input.\n\n" +
			"The command waits up to ten seconds for the platform's answer. A channel that is down gets the text later.",
		Example: "  switchboard channels send telegram_channel the tea is ready\n" +
			"  df -h | switchboard channels send telegram_channel -",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: first(channelIDs),
	}
	asJSON := jsonFlag(c)
	c.RunE = withKernel("send to", byName(channelIDs, 1, func(c *cobra.Command, k *admin.Client, args []string) error {
		message, err := textOf(c, args[1:])
		if err != nil {
			return err
		}
		sent, err := k.Send(c.Context(), &adminv1.SendRequest{Channel: args[0], Text: message})
		if err != nil {
			return err
		}
		if *asJSON {
			if err := printJSON(c, sent); err != nil {
				return err
			}
		}
		switch {
		case sent.Status == "failed":
			return fmt.Errorf("not delivered: %s; see `switchboard events show %s`, or try again with `switchboard events "+
				"resubmit %[2]s`",
				sent.Detail, sent.Events[0])
		case *asJSON:
		case sent.Status == "queued":
			p := printerOf(c)
			p.line("%s: %s", p.paint(yellow, "queued"), sent.Detail)
			p.faint("`switchboard events show " + sent.Events[0] + "` shows what happened to it.")
		default:
			p := printerOf(c)
			p.line("%s to %s", p.paint(green, sent.Status), args[0])
		}
		return nil
	}))
	return c
}

// textOf returns the text to send: the words of the command line, or the input.
func textOf(c *cobra.Command, words []string) (string, error) {
	if len(words) > 0 && (len(words) != 1 || words[0] != "-") {
		return strings.Join(words, " "), nil
	}
	data, err := io.ReadAll(io.LimitReader(c.InOrStdin(), contract.MaxPayload+1))
	if err != nil {
		return "", fmt.Errorf("read the text: %w", err)
	}
	return strings.TrimRight(string(data), "\n"), nil
}
