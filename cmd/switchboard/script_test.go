package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/sdk"
)

// The scripts run this test binary as switchboard, as the executable of a channel that
// is dropped in, and as the commands of an init system.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"switchboard": main, "postbox": postbox, "broken": broken, "systemctl": fakeSystemctl, "loginctl": fakeLoginctl,
	})
}

// TestScript runs the command line as people do, each script with a home of its
// own.
func TestScript(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			// Short, for the sockets in it.
			home, err := os.MkdirTemp("/tmp", "sb")
			if err != nil {
				return err
			}
			e.Defer(func() { _ = os.RemoveAll(home) })
			e.Setenv("SWITCHBOARD_HOME", home)
			e.Setenv("H", home)
			e.Setenv("TZ", "Europe/Berlin")
			e.Setenv("NO_PROXY", "*")
			return fakeInitIn(e)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"until":    until,
			"started":  started,
			"capture":  capture,
			"json":     isJSON,
			"rebooted": rebooted,
			"hashed":   hashed,
		},
	})
}

// patience is how long a condition may take to come true.
const patience = 2 * time.Minute

// until runs a command until its output matches: until 'regexp' command args...
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until regexp command [args...]")
	}
	want, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		err := ts.Exec(args[1], args[2:]...)
		if err == nil && want.MatchString(ts.ReadFile("stdout")) {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("%q did not come: %v", args[0], err)
		}
	}
}

// started waits until no extension is on its way.
func started(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: started")
	}
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		var s struct{ Extensions []*adminv1.Extension }
		err := ts.Exec("switchboard", "status", "--json")
		if err == nil {
			err = json.Unmarshal([]byte(ts.ReadFile("stdout")), &s)
		}
		onTheWay := slices.ContainsFunc(s.Extensions, func(x *adminv1.Extension) bool {
			return x.State == "starting" ||
				x.State == "inactive"
		})
		if err == nil && len(s.Extensions) > 0 && !onTheWay {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("the kernel did not start: %v, %+v", err, s.Extensions)
		}
	}
}

// capture keeps what a group of a regexp matches in the last output:
// capture NAME 'regexp'
func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: capture name regexp")
	}
	found := regexp.MustCompile("(?m)" + args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(found) < 2 {
		ts.Fatalf("no %s in the output", args[1])
	}
	ts.Setenv(args[0], found[1])
}

// hashed writes a file in which HASH0 and so on are the hashes of files: hashed from to
// files...
func hashed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: hashed from to [files...]")
	}
	text := ts.ReadFile(args[0])
	for i, name := range args[2:] {
		text = strings.ReplaceAll(text, fmt.Sprintf("HASH%d", i), fmt.Sprintf("%x", sha256.Sum256([]byte(ts.ReadFile(name)))))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
}

// isJSON checks that the last output is JSON.
func isJSON(ts *testscript.TestScript, neg bool, _ []string) {
	if out := strings.TrimSpace(ts.ReadFile("stdout")); json.Valid([]byte(out)) == neg {
		ts.Fatalf("JSON: %v, want %v:\n%s", !neg, neg, out)
	}
}

// postbox is a channel: a file in its data directory named <user>.in is a
// message of that user, and what goes to them is appended to <user>.out. It
// refuses texts with the word unwanted.
func postbox() {
	var dir string
	send := func(_ context.Context, m sdk.Message) (sdk.Receipt, error) {
		if strings.Contains(m.Text, "unwanted") {
			return sdk.Receipt{}, sdk.Drop("nobody wants that")
		}
		to := m.Conversation
		if to == "" {
			to = "nobody"
		}
		f, err := os.OpenFile(filepath.Join(dir, to+".out"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return sdk.Receipt{}, err
		}
		_, err = f.WriteString(m.Text + "\n")
		return sdk.Receipt{ProviderID: "letter-" + m.ID, Conversation: to}, errors.Join(err, f.Close())
	}
	sdk.Serve(sdk.Extension{
		ID:      "postbox",
		Start:   func(_ context.Context, k *sdk.Kernel) error { dir = k.DataDir(); return nil },
		Channel: sdk.ChannelFunc(send),
		Run:     func(ctx context.Context, k *sdk.Kernel) error { return collect(ctx, k, dir) },
	})
}

func collect(ctx context.Context, k *sdk.Kernel, dir string) error {
	for {
		files, _ := filepath.Glob(filepath.Join(dir, "*.in"))
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				return err
			}
			user := strings.TrimSuffix(filepath.Base(f), ".in")
			message := sdk.UserMessage{Text: string(text), UserID: user, UserName: user, ConversationID: user,
				MessageID: "card-" + user}
			if err := k.Receive(ctx, message, ""); err != nil {
				return err
			}
			if err := os.Remove(f); err != nil {
				return err
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil
		}
	}
}
