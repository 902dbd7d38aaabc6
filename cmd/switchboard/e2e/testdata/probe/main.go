// Command probe is an extension that does what a test wants: probe ID MODE. It
// works in its data directory. With every mode it writes its
// environment to the file env.
//
//	bus      takes requests, JSON lines, from the fifo in, publishes, and
//	         answers in the file out
//	asker    as bus; what comes on its topic <id>.answered is noted in the file
//	         answers
//	looper   is a caller that answers each result with the next call
//	caller   calls tools: those of the JSON lines from the fifo in, and at a message of a
//	         person the one in the file then; results are noted in the file results
//	tools    two tools that note each run in the file calls: slow waits until
//	         the file release exists, and must not run twice; look may
//	teller   describes the tools in the file described, and again at each line from the
//	         fifo in; each run is noted in the file calls
//	command  a tool that is also the command /shout
//	commands /shout, which answers at once, and the tools of the mode tools as
//	         the commands /slow and /look; each run is noted in the file calls
//	storm    a tool that has an agent do something, which calls it again
//	chatter  writes much to stdout while and after it starts
//	garbage  writes to stdout before it starts
//	crash    ends with status 3 once it is active
//	blurt    tells its secret OWN_SECRET in every way that it can, and ends with it
//	once     as crash, unless the file repaired exists
//	exit     ends at once
//	hang     never finishes starting
//	mute     says nothing at all, not even the handshake
//	child    leaves a process that holds stdout
//	channel  a channel that notes what it sends in the file out
//	poster   a channel that sends messages with files: JSON lines from the fifo in
//	         name them; what it sends is noted in the file out
//	owner    reads and changes what is the owner's, and notes in the file seen what
//	         came of it
//	shop     see shop.go
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/admin"
	"github.com/switchboard-run/switchboard/sdk/agent"
)

func main() {
	id, mode := os.Args[1], os.Args[2]
	if err := os.Chdir(filepath.Dir(os.TempDir())); err != nil { // which is below it
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	note("env", strings.Join(os.Environ(), "\n"))
	e := sdk.Extension{ID: id}
	switch mode {
	case "agent":
		e = agent.Extension(id, agent.Options{})
	case "bus":
		e.Run = bus
	case "asker":
		e.Run = bus
		e.Handle = func(_ context.Context, ev sdk.Event) (sdk.Effects, error) {
			note("answers", string(ev.Payload))
			return nil, nil
		}
	case "caller":
		e.Run, e.Handle, e.Results = callTools, callThen, func(_ context.Context, r sdk.CallResult) (sdk.Effects, error) {
			note("results", fmt.Sprintf("%s %t %s", r.ID, r.IsError, r.Content))
			return nil, nil
		}
	case "looper":
		e.Run, e.Results = callTools, func(_ context.Context, r sdk.CallResult) (sdk.Effects, error) {
			note("results", r.ID)
			return sdk.Effects{sdk.Call(r.ID+"+", "lab/look", json.RawMessage("{}"))}, nil
		}
	case "tools":
		e.Tools = tools
	case "teller":
		e.Tools, e.Run = described(), func(_ context.Context, k *sdk.Kernel) error {
			in, err := os.OpenFile("in", os.O_RDWR, 0)
			if err != nil {
				return err
			}
			for lines := bufio.NewScanner(in); lines.Scan(); {
				if err := k.SetTools(described()); err != nil {
					return err
				}
			}
			return nil
		}
	case "command":
		e.Tools = []sdk.Tool{shout}
	case "commands":
		e.Tools = []sdk.Tool{shout}
		for _, t := range tools {
			t.Command = t.Name
			e.Tools = append(e.Tools, t)
		}
	case "storm":
		e.Tools = []sdk.Tool{{Name: "again", Description: "Begins again.", Idempotent: true,
			Call: func(context.Context, sdk.ToolCall) (sdk.ToolResult, error) {
				return sdk.JSON("begun", sdk.Publish("system.agent.task", map[string]string{"prompt": "begin"}))
			}}}
	case "garbage":
		chatter("before")
	case "chatter":
		e.Start = func(context.Context, *sdk.Kernel) error { chatter("while"); return nil }
		e.Run = func(context.Context, *sdk.Kernel) error { chatter("after"); note("out", "done"); return nil }
	case "crash":
		e.Run = func(context.Context, *sdk.Kernel) error { os.Exit(3); return nil }
	case "blurt":
		e.Run = blurt
	case "once":
		e.Run = func(context.Context, *sdk.Kernel) error {
			if _, err := os.Stat("repaired"); err != nil {
				os.Exit(3)
			}
			return nil
		}
	case "exit":
		os.Exit(3)
	case "hang":
		e.Start = func(context.Context, *sdk.Kernel) error { select {} }
	case "mute":
		time.Sleep(time.Hour)
	case "child":
		e.Start = func(context.Context, *sdk.Kernel) error {
			child := exec.Command("sleep", "3607")
			child.Stdout, child.Stderr = os.Stdout, os.Stderr
			return child.Start()
		}
	case "owner":
		e.Run = owner
	case "shop":
		e.Tools, e.Channel = shopTools, sdk.ChannelFunc(shopSend)
	case "poster":
		e.Channel = sdk.ChannelFunc(func(_ context.Context, m sdk.Message) (sdk.Receipt, error) {
			note("out", m.Text)
			return sdk.Receipt{ProviderID: m.ID, Conversation: "box"}, nil
		})
		e.Run = post
	case "channel":
		e.Channel = sdk.ChannelFunc(func(_ context.Context, m sdk.Message) (sdk.Receipt, error) {
			note("out", m.Text)
			return sdk.Receipt{ProviderID: m.ID, Conversation: "box"}, nil
		})
	}
	sdk.Serve(e)
}

// described are the tools in the file described: JSON of sdk.Tool without its function.
func described() []sdk.Tool {
	text, err := os.ReadFile("described")
	if err != nil {
		return nil
	}
	var all []struct {
		Name, Description, Command string
		Schema                     json.RawMessage
		Approve                    bool
	}
	if err := json.Unmarshal(text, &all); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var tools []sdk.Tool
	for _, t := range all {
		tools = append(tools, sdk.Tool{
			Name: t.Name, Description: t.Description, Schema: t.Schema, Approve: t.Approve, Command: t.Command,
			Call: func(_ context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
				note("calls", c.Name)
				return sdk.ToolResult{Content: "the result of " + c.Name}, nil
			},
		})
	}
	return tools
}

// owner asks the services of the owner's side.
func owner(ctx context.Context, k *sdk.Kernel) error {
	conn := k.Services().Conn
	s, err := admin.ReadStatus(ctx, admin.Reader(conn))
	note("seen", fmt.Sprintf("status of %s: %v", s.Status.GetHome(), err))
	_, err = adminv1.NewManageClient(conn).DeleteSession(ctx, &adminv1.DeleteSessionRequest{Id: "s1"})
	note("seen", fmt.Sprintf("deleting a session: %v", contract.FromStatus(err)))
	return nil
}

// post reports the messages in the fifo in, whose files it stores first.
func post(ctx context.Context, k *sdk.Kernel) error {
	in, err := os.OpenFile("in", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var m struct {
			Text  string
			Files []struct{ Path, Kind, Name, MIME string }
			Quote *contract.Quote
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return err
		}
		out := sdk.UserMessage{Text: m.Text, UserID: "me", ConversationID: "box", Quote: m.Quote}
		for _, f := range m.Files {
			file, err := os.Open(f.Path)
			if err != nil {
				return err
			}
			blob, err := k.PutBlob(ctx, file)
			_ = file.Close()
			if err != nil {
				return err
			}
			out.Attachments = append(out.Attachments, contract.Attachment{
				Kind: f.Kind, Name: f.Name, MIME: f.MIME, Blob: blob.Hash, Size: blob.Size,
			})
		}
		if err := k.Receive(ctx, out, ""); err != nil {
			return err
		}
	}
	return nil
}

// note appends a line to a file.
func note(file, line string) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, _ = f.WriteString(line + "\n")
	_ = f.Close()
}

func chatter(when string) {
	for range 200 {
		fmt.Println(when, strings.Repeat("blah ", 1000))
	}
}

// request is one line of the fifo.
type request struct {
	Topic   string         `json:"topic"`
	Payload map[string]any `json:"payload"`
	Size    int            `json:"size"` // bytes of text to add to the payload
}

func bus(ctx context.Context, k *sdk.Kernel) error {
	in, err := os.OpenFile("in", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return err
		}
		if r.Size > 0 {
			r.Payload["filling"] = strings.Repeat("x", r.Size)
		}
		if _, err := k.Commit(ctx, sdk.Publish(r.Topic, r.Payload)); err != nil {
			note("out", "error: "+err.Error())
		} else {
			note("out", "ok")
		}
	}
	return nil
}

// wanted is a call that a test wants.
type wanted struct {
	ID, Tool  string
	Arguments json.RawMessage
}

func (w wanted) effect(id string) sdk.Effect { return sdk.Call(id, w.Tool, w.Arguments) }

func callTools(ctx context.Context, k *sdk.Kernel) error {
	in, err := os.OpenFile("in", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var w wanted
		if err := json.Unmarshal(lines.Bytes(), &w); err != nil {
			return err
		}
		if _, err := k.Commit(ctx, w.effect(w.ID)); err != nil {
			note("out", "error: "+err.Error())
		} else {
			note("out", "ok")
		}
	}
	return nil
}

func callThen(_ context.Context, e sdk.Event) (sdk.Effects, error) {
	line, err := os.ReadFile("then")
	if err != nil {
		return nil, err
	}
	var w wanted
	if err := json.Unmarshal(line, &w); err != nil {
		return nil, err
	}
	return sdk.Effects{w.effect(e.ID)}, nil
}

var shout = sdk.Tool{
	Name: "shout", Description: "Shouts.", Command: "shout", ReadOnly: true,
	Schema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`),
	Call: func(_ context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
		note("calls", "shout "+c.ID)
		var in struct{ Text string }
		err := json.Unmarshal(c.Arguments, &in)
		return sdk.ToolResult{Content: strings.ToUpper(in.Text) + "!"}, err
	},
}

var tools = []sdk.Tool{
	{
		Name: "slow", Description: "Does something once, and takes its time.",
		Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`),
		Call:   call("slow"),
	},
	{
		Name: "look", Description: "Looks at something, and takes its time.", ReadOnly: true,
		Call: call("look"),
	},
}

func call(name string) func(context.Context, sdk.ToolCall) (sdk.ToolResult, error) {
	return func(ctx context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
		note("calls", name+" "+c.ID)
		for {
			if _, err := os.Stat("release"); err == nil {
				return sdk.ToolResult{Content: "the result of " + name}, nil
			}
			select {
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
				return sdk.ToolResult{}, ctx.Err()
			}
		}
	}
}

func blurt(_ context.Context, k *sdk.Kernel) error {
	secret := k.Secret("OWN_SECRET")
	if note("told", "yes"); secret == "" {
		return nil
	}
	address := "https://example.org/bot" + secret + "/getMe?key=" + url.QueryEscape(secret)
	k.Log().Error("calling failed", "error", errors.New("Get "+address), "secret", secret)
	fmt.Fprintln(os.Stderr, "plainly:", address)
	fmt.Println("and to stdout:", secret)
	k.SetReadiness(sdk.Degraded, "cannot reach "+address)
	fmt.Fprintln(os.Stderr, "never call", address)
	os.Exit(2)
	return nil
}
