package sdk_test

import (
	"context"
	"os"

	"github.com/switchboard-run/switchboard/sdk"
)

// A channel that writes to a file. It needs a manifest with
// "provides: {channel: {formats: [text]}}".
func Example_channel() {
	send := func(_ context.Context, m sdk.Message) (sdk.Receipt, error) {
		f, err := os.OpenFile("messages.txt", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return sdk.Receipt{}, err // not sent: retried
		}
		if _, err := f.WriteString(m.Text + "\n"); err != nil {
			return sdk.Receipt{}, sdk.Unknown(err) // may be written partially
		}
		return sdk.Receipt{ProviderID: m.ID}, f.Close()
	}
	sdk.Serve(sdk.Extension{ID: "file_channel", Channel: sdk.ChannelFunc(send)})
}
