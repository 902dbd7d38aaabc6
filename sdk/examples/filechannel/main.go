package main

import (
	"bufio"
	"context"
	"os"

	"github.com/switchboard-run/switchboard/sdk"
)

func main() {
	out, _ := os.OpenFile(os.Args[1]+"/out", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	send := func(_ context.Context, m sdk.Message) (sdk.Receipt, error) {
		_, err := out.WriteString(m.Text + "\n")
		return sdk.Receipt{ProviderID: m.ID, Conversation: "file"}, err
	}
	read := func(ctx context.Context, k *sdk.Kernel) error {
		in, err := os.OpenFile(os.Args[1]+"/in", os.O_RDWR, 0)
		for lines := bufio.NewScanner(in); err == nil && lines.Scan(); {
			err = k.Receive(ctx, sdk.UserMessage{Text: lines.Text(), UserID: "me", ConversationID: "file"}, "")
		}
		return err
	}
	sdk.Serve(sdk.Extension{ID: "file_channel", Channel: sdk.ChannelFunc(send), Run: read})
}
