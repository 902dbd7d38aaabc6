package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/switchboard-run/switchboard/bench/processes"
	"github.com/switchboard-run/switchboard/sdk"
)

// Idles is the argument for processes that do nothing.
const Idles = "Idles"

// ServeShop runs this program as an extension with a tool whose effect must not be repeated,
// and a second channel. Both record their work in files of the extension's data directory,
// for the counts. With besides it starts processes beside itself.
func ServeShop(besides bool) {
	var dir string
	sdk.Serve(sdk.Extension{
		ID: "shop",
		Start: func(_ context.Context, k *sdk.Kernel) error {
			dir = k.DataDir()
			if !besides {
				return nil
			}
			return beside()
		},
		Tools: []sdk.Tool{{
			Name: "act", Description: "Acts.",
			Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"string"}},` +
				`"required":["n"],"additionalProperties":false}`),
			Call: func(_ context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
				var q struct{ N string }
				if err := json.Unmarshal(c.Arguments, &q); err != nil {
					return sdk.ToolResult{}, err
				}
				err := note(filepath.Join(dir, "acts"), q.N)
				time.Sleep(5 * time.Millisecond) // so that kills hit it
				return sdk.ToolResult{Content: "did " + q.N}, err
			},
		}},
		Channel: sdk.ChannelFunc(func(_ context.Context, m sdk.Message) (sdk.Receipt, error) {
			return sdk.Receipt{ProviderID: m.ID, Conversation: "counter"}, note(filepath.Join(dir, "news"), m.Text)
		}),
	})
}

// beside starts two processes that never end, one in the shop's process group and one
// outside of it. They must end with the shop.
func beside() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, leaves := range []bool{false, true} {
		child := exec.Command(self, Idles)
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: leaves}
		if err := child.Start(); err != nil {
			return fmt.Errorf("starting a process beside the shop: %w", err)
		}
	}
	return nil
}

// Idle reports whether the shop has started a process.
func Idle(p processes.Process) bool { return strings.HasSuffix(p.Command, " "+Idles) }

// note appends a line to a file.
func note(file, line string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("record the work: %w", err)
	}
	_, err = f.WriteString(line + "\n")
	_ = f.Close()
	return err
}

// Noted returns the lines of a file of the shop, in its data directory.
func Noted(path string) []string {
	raw, _ := os.ReadFile(path)
	return strings.Split(strings.TrimSpace(string(raw)), "\n")
}
