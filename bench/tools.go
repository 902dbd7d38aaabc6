package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
	"github.com/switchboard-run/switchboard/sdk"
)

// The same tool, of an extension and of an MCP server.
const (
	plainTool = "plain/echo"
	mcpTool   = "mcp/far__echo"
)

// servePlain is the bench binary as an extension with a tool.
func servePlain() {
	sdk.Serve(sdk.Extension{ID: "plain", Tools: []sdk.Tool{{
		Name: "echo", Description: "Return a text.", // it counts as one with effects, as that of the server does
		Schema: json.RawMessage(`{"type": "object", "properties": {"text": {"type": "string"}}}`),
		Call: func(_ context.Context, c sdk.ToolCall) (sdk.ToolResult, error) {
			return sdk.ToolResult{Content: string(c.Arguments)}, nil
		},
	}}})
}

// serveMCP is the bench binary as an MCP server on stdin and stdout: the tool echo, and
// further ones.
func serveMCP(further string) {
	s := mcp.NewServer(&mcp.Implementation{Name: "far", Version: "1"}, nil)
	type text struct {
		Text string `json:"text"`
	}
	echo := func(_ context.Context, _ *mcp.CallToolRequest, in text) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
	}
	mcp.AddTool(s, &mcp.Tool{Name: "echo", Description: "Return a text."}, echo)
	n, _ := strconv.Atoi(further)
	for i := range n {
		description := fmt.Sprintf("Return a text, as number %d of many tools that no one asks for.", i)
		mcp.AddTool(s, &mcp.Tool{Name: fmt.Sprintf("further_%d", i), Description: description}, echo)
	}
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "bench: serve MCP:", err)
	}
}

// withServer gives a bed an MCP server that needs no question, with further tools, and what
// else its configuration has.
func (d *bed) withServer(further int, config string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	servers, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"far": map[string]any{
		"command": self, "args": []string{"mcp", strconv.Itoa(further)},
		"switchboard": map[string]any{"readOnly": []string{"echo"}},
	}}})
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(d.home, "mcp.json"), servers, 0o600),
		d.configure("extensions:\n  mcp: {allow: [far]}\n"+config))
}

// configure writes a configuration that admits everyone.
func (d *bed) configure(further string) error {
	config := "channels: {telegram_channel: {allow_from: [\"*\"]}}\n" + further
	return os.WriteFile(filepath.Join(d.home, "config.yaml"), []byte(config), 0o600)
}

// offers waits until the tools of the MCP server are offered.
func (d *bed) offers(binary string) error {
	return until("the tools of the MCP server were not offered", func() bool {
		c := exec.Command(binary, "extensions", "servers", "--json")
		c.Env = d.kernel.Env
		out, err := c.Output()
		var all []struct{ Tools []string }
		return err == nil && json.Unmarshal(out, &all) == nil && len(all) == 1 && len(all[0].Tools) > 0
	})
}

// dropIn writes the manifest of an extension into the home.
func (d *bed) dropIn(id, lines string) error {
	dir := filepath.Join(d.home, "extensions", id)
	text := fmt.Sprintf("api: 1\nid: %s\nname: %s\nversion: 1.0.0\n%s", id, id, lines)
	return errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "manifest.yaml"), []byte(text), 0o600))
}

// A burst is one turn whose model calls a tool of the MCP server many times.
const (
	burstChat   = 1000
	burstRounds = 8
	burstCalls  = 25 // in each round
	toolBlocks  = 20
	toolBlock   = 20 // messages
)

// toolCalls compares a call of a tool of an MCP server with one of an extension, and other chats
// during a burst of calls with those without one, in alternating blocks on one kernel.
func toolCalls(b *bench) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var none, plain, far, p50, p99 []float64
	for range b.rounds {
		d, err := newBed()
		if err != nil {
			return err
		}
		d.model.Handle(callsTools)
		if err := errors.Join(
			d.withServer(0, "  plain: {allow: true}\nagents: {orchestrator: {tools: [+plain/*]}}\n"),
			d.dropIn("plain", fmt.Sprintf("run: {command: %q, args: [extension, plain]}\nprovides: {tools: true}\n", self)),
			d.start(b.binary), d.warm(), d.offers(b.binary),
		); err != nil {
			return err
		}
		for c := range pacedChats {
			d.telegram.AddChat(telegramtest.Chat{ID: int64(firstChat + c), Type: telegramtest.Private})
		}
		said := map[string][]time.Duration{}
		var bursting []time.Duration
		for range max(b.scale(toolBlocks), 4) {
			for _, text := range []string{"hi", plainTool, mcpTool} {
				times, err := d.sayAll(text, false)
				if err != nil {
					return err
				}
				said[text] = append(said[text], times...)
			}
			times, err := d.sayAll("hi", true)
			if err != nil {
				return err
			}
			bursting = append(bursting, times...)
		}
		d.close()
		ms := func(text string) float64 { return float64(median(said[text])) / float64(time.Millisecond) }
		none, plain, far = append(none, ms("hi")), append(plain, ms(plainTool)), append(far, ms(mcpTool))
		p50 = append(p50, float64(median(bursting))/float64(median(said["hi"])))
		p99 = append(p99, float64(quantile(bursting, 0.99))/float64(quantile(said["hi"], 0.99)))
	}
	inMS := func(f float64) string { return fmt.Sprintf("%.2f ms", f) }
	var more []float64
	for i := range far {
		more = append(more, far[i]-plain[i])
	}
	fmt.Printf("a turn without a tool, p50: %s; with one call of an extension's: %s; of an MCP server's: %s\n",
		spread(none, inMS), spread(plain, inMS), spread(far, inMS))
	fmt.Println("an MCP call takes longer than one of an extension by", spread(more, inMS))
	fmt.Printf("other chats while one makes %d MCP calls in a turn, again and again, beside without: p50 %s, p99 %s\n",
		burstRounds*burstCalls, spread(p50, times), spread(p99, times))
	return nil
}

// wrong begins the answer of the model when a call has failed.
const wrong = "WRONG: "

// callsTools is a model that calls the tool that the message names once, and many times in
// a burst.
func callsTools(r openaitest.Request) openaitest.Answer {
	said, calls := heard(r), roundsOf(r)
	use := func(tool string) openaitest.Call {
		return openaitest.NewCall("use_tool", map[string]any{"name": tool, "arguments": map[string]any{"text": "a text"}})
	}
	switch {
	case strings.Contains(said, "burst") && calls < burstRounds:
		all := make([]openaitest.Call, burstCalls)
		for i := range all {
			all[i] = use(mcpTool)
		}
		return openaitest.Answer{Calls: all, Pieces: 1}
	case calls > 0:
	case strings.Contains(said, plainTool):
		return openaitest.Answer{Calls: []openaitest.Call{use(plainTool)}, Pieces: 1}
	case strings.Contains(said, mcpTool):
		return openaitest.Answer{Calls: []openaitest.Call{use(mcpTool)}, Pieces: 1}
	}
	if calls > 0 && len(r.Results()) > 0 && !strings.Contains(r.Results()[0], "a text") {
		return openaitest.Answer{Text: wrong + r.Results()[0], Pieces: 1}
	}
	return openaitest.Answer{Text: "Done.", Pieces: 1}
}

// sayAll says a text in one chat after the other, and returns the times until the replies.
// With a burst, another chat makes one after the other meanwhile.
func (d *bed) sayAll(text string, burst bool) (times []time.Duration, err error) {
	reply := func(ofBurst bool) error {
		for {
			m, err := d.reply(context.Background())
			switch {
			case err != nil:
				return err
			case strings.HasPrefix(m.Text, wrong):
				return errors.New(m.Text)
			case (m.Chat == burstChat) == ofBurst:
				return nil
			case !ofBurst:
				d.say(burstChat, "burst")
			}
		}
	}
	if burst {
		d.telegram.AddChat(telegramtest.Chat{ID: burstChat, Type: telegramtest.Private})
		d.say(burstChat, "burst")
	}
	for i := range toolBlock {
		began := time.Now()
		d.say(int64(firstChat+i%pacedChats), text)
		if err := reply(false); err != nil {
			return nil, err
		}
		times = append(times, time.Since(began))
		time.Sleep(10 * time.Millisecond) //nolint:forbidigo // the pace
	}
	if burst {
		return times, reply(true)
	}
	return times, nil
}
