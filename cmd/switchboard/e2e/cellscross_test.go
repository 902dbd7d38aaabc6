package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
	"github.com/switchboard-run/switchboard/extensions/clichannel/wire"
	"github.com/switchboard-run/switchboard/extensions/openai/openaitest"
	"github.com/switchboard-run/switchboard/extensions/telegramchannel/telegramtest"
	"github.com/switchboard-run/switchboard/internal/loopback"
)

// household gives a cell a bot, a model and a page of its own, and returns the page with a
// token for messages.
func (w *world) household() *program {
	w.t.Helper()
	w.telegram, w.model = telegramtest.Start(w.t), openaitest.New(w.t)
	w.telegram.AddChat(telegramtest.Chat{ID: anna, Type: telegramtest.Private})
	w.model.Handle(echo)
	port, err := loopback.Take()
	if err != nil {
		w.t.Fatal(err)
	}
	port.Release()
	w.write(fmt.Sprintf("TELEGRAM_BOT_TOKEN=%s\nTELEGRAM_API_URL=%s\nOPENAI_API_KEY=k\nOPENAI_BASE_URL=%s\nOPENAI_MODEL=m\n",
		w.telegram.Token(), w.telegram.URL(), w.model.BaseURL()), 0o600, "secrets.env")
	w.config(fmt.Sprintf("channels: {telegram_channel: {allow_from: [\"%d\"]}}\nextensions: {web_channel: {config: {listen: %q}}}\n",
		anna, port.Addr))
	p := &program{w: w, url: "http://" + port.Addr}
	w.eventually("the page", func() bool {
		out, _, code := w.cli("tokens", "create", "program", "--scope", "messages", "--json")
		var made struct{ Token, URL string }
		if code == 0 && json.Unmarshal([]byte(out), &made) == nil && made.URL != p.url { // before the configuration was read
			w.must("tokens", "revoke", "program")
			return false
		}
		p.token = made.Token
		return code == 0
	})
	return p
}

// status is that of the answer to a request.
func (p *program) status(what, body string, headers ...string) (code int, text string) {
	p.w.t.Helper()
	answer, err := p.request(what, body, headers...)
	if err != nil {
		p.w.t.Fatal(err)
	}
	defer answer.Body.Close()
	read, err := io.ReadAll(answer.Body)
	if err != nil {
		p.w.t.Fatal(err)
	}
	return answer.StatusCode, string(read)
}

// sendsFile sends a message with a file, and returns the file's hash.
func (p *program) sendsFile(data string) string {
	p.w.t.Helper()
	sum := sha256.Sum256([]byte(data))
	hash := hex.EncodeToString(sum[:])
	if code, body := p.status("POST /api/v1/files?name=list.txt", data); code != http.StatusCreated || !strings.Contains(body, hash) {
		p.w.t.Fatalf("uploading answers %d %s", code, body)
	}
	said := fmt.Sprintf(`{"text": "keep <this>", "attachments": [%q], "wait": 120}`, hash)
	if code, body := p.status("POST /api/v1/messages", said); code != http.StatusOK || !strings.Contains(body, "answered") {
		p.w.t.Fatalf("the message answers %d %s", code, body)
	}
	return hash
}

// blob asks the kernel at a socket for a file, with the token of an extension.
func (w *world) blob(socket, token, hash string) error {
	conn, err := grpc.NewClient("unix:"+socket, append(contract.DialOptions(), grpc.WithNoProxy(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx := metadata.AppendToOutgoingContext(w.ctx(), contract.TokenHeader, token)
	stream, err := kernelv1.NewBlobsClient(conn).Get(ctx, &kernelv1.GetBlobRequest{Hash: hash})
	if err == nil {
		_, err = stream.Recv()
	}
	_, of := adminv1.NewReadClient(conn).Status(ctx, &adminv1.StatusRequest{})
	if of == nil {
		w.t.Errorf("the token of an extension shows the status at %s", socket)
	}
	return err
}

// Nothing that one cell has on a node opens anything of another: names of its files, tokens
// of its programs, browsers, terminals and extensions, and the files of its home.
func TestNothingOfACellOpensAnother(t *testing.T) {
	t.Parallel()
	_, all := serving(t, "a")
	a := all[0]
	one, two := a.cell("one"), a.cell("two")
	first, second := one.household(), two.household()
	secret := first.sendsFile("the otter's diary")

	// By the page and the API, with either cell's token and login.
	path := "GET /files/" + secret
	if code, body := first.status(path, ""); code != http.StatusOK || body != "the otter's diary" {
		t.Fatalf("its own file answers %d %s", code, body)
	}
	if code, _ := second.status(path, ""); code != http.StatusNotFound {
		t.Errorf("the file of another cell answers %d", code)
	}
	if code, body := second.status("POST /api/v1/messages", fmt.Sprintf(`{"text": "hi", "attachments": [%q]}`, secret)); code < 400 {
		t.Errorf("a message with the file of another cell answers %d %s", code, body)
	}
	stranger := *second
	stranger.token = first.token
	for _, what := range []string{path, "GET /api/v1/messages", "GET /v1/models", "GET /board"} {
		if code, body := stranger.status(what, ""); code != http.StatusUnauthorized {
			t.Errorf("%s with the token of another cell answers %d %s", what, code, body)
		}
	}
	ours := (&page{w: one, base: first.url}).open()
	theirs := &browser{Client: ours.Client, p: &page{w: two, base: second.url}} // cookies do not know ports
	if code, _ := ours.get("/board"); code != http.StatusOK {
		t.Fatalf("its own login answers %d", code)
	}
	if code, _ := theirs.get("/board"); code != http.StatusUnauthorized {
		t.Errorf("the login of another cell answers %d", code)
	}
	link := strings.TrimPrefix((&page{w: one, base: first.url}).link(), first.url)
	if code, _ := theirs.get(link); code != http.StatusForbidden {
		t.Errorf("the link of another cell answers %d", code)
	}

	// By a model, on a channel.
	two.model.Queue(openaitest.CallTool(sendTool, map[string]any{
		"channel_id": "telegram_channel", "text": "here it is", "attachments": []string{secret},
	}), openaitest.Say("That did not work."))
	two.telegram.Say(anna, "send me [document "+secret[:6]+"]")
	if text := two.told(anna, 1).Text; text != "That did not work." {
		t.Errorf("the other cell's bot writes %q", text)
	}
	last := two.model.Requests()[two.model.Total()-1]
	contains(t, "the result of the tool", last.Last("tool"), "there is no file")

	// By a terminal.
	terminal, err := two.dial()
	if err != nil {
		t.Fatal(err)
	}
	conn := wire.NewConn(terminal, patience)
	defer func() { _ = conn.Close() }()
	err = conn.Write(wire.Frame{Type: wire.Hello, Version: wire.Version, Terminal: wire.NewID(), Token: one.terminalToken()})
	if f, got := conn.Read(); err != nil || got == nil && f.Type == wire.Welcome {
		t.Errorf("a terminal with the token of another cell: %v %v %v", f, got, err)
	}

	// By the command line.
	for _, name := range []string{"../x", "..", ".", "one/../two", "./one", "../cells/one", a.home, "One", "one.deleted"} {
		a.refused("there is no cell", "--cell", name, "status")
	}
	one.refused("is the home of one cell", "--cell", "two", "status")
	one.refused("is the home of one cell", "--cell", "main", "status")
	one.refused("connection string", "cells", "list")
	one.refused("connection string", "cluster", "status")

	two.crosses(secret, a, one)

	// The same file in both cells: each has its own, also when the other one is deleted.
	if same := second.sendsFile("the otter's diary"); same != secret {
		t.Fatalf("the same file is %s and %s", secret, same)
	}
	a.must("cells", "delete", "one", "--yes")
	if err := os.RemoveAll(two.file("blobs")); err != nil { // so that it comes from PostgreSQL
		t.Fatal(err)
	}
	if code, body := second.status(path, ""); code != http.StatusOK || body != "the otter's diary" {
		t.Errorf("the file that a deleted cell had, too, answers %d %s", code, body)
	}
}

// crosses lets an extension of the cell try what belongs to others, and tries its token there.
func (w *world) crosses(secret string, others ...*world) {
	t := w.t
	t.Helper()
	var args []string
	for _, o := range others {
		args = append(args, "'"+o.home+"'")
	}
	w.hostile("cross, '"+secret+"', "+strings.Join(args, ", "), "", "permissions: {blobs: true}")
	w.eventually("the extension's program to be allowed", func() bool {
		_, _, code := w.cli("cluster", "allow", "hostile")
		return code == 0
	})
	w.harm()
	var found struct {
		Got               []string
		Tried             int
		Stored, Token, No string
	}
	if err := json.Unmarshal([]byte(w.text("data", "hostile", "found")), &found); err != nil {
		t.Fatal(err)
	}
	contains(t, "the answer to the name of another cell's file", found.No, "there is no file")
	if runtime.GOOS == "linux" { // elsewhere there is no sandbox
		for _, got := range found.Got {
			t.Errorf("an extension of another cell has %s", got)
		}
	}
	if found.Tried < 30 {
		t.Errorf("it tried %d things only", found.Tried)
	}
	if err := w.blob(w.file("run", "kernel.sock"), found.Token, found.Stored); err != nil {
		t.Fatalf("its own kernel refuses its token: %v", err)
	}
	for _, o := range others {
		for _, socket := range []string{"kernel.sock", contract.ControlSocket} {
			if err := o.blob(o.file("run", socket), found.Token, secret); status.Code(err) != codes.Unauthenticated {
				t.Errorf("with the token of another cell's extension, %s of %s: %v", socket, o.home, err)
			}
		}
	}

	// Files of others are not for a manifest, whatever its owner allows.
	for i, path := range []string{others[0].file("cluster.key"), others[0].home, others[1].file("blobs"),
		filepath.Join(filepath.Dir(others[1].home), "x")} {
		id := fmt.Sprintf("greedy%d", i)
		w.probe(id, "bus", "permissions: {files: ["+path+"]}")
		w.eventually("a refusal of "+path, func() bool {
			return strings.Contains(w.extension(w.control(), id).GetDetail(), "which no extension may access")
		})
	}
}
