package e2e

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// chatPlatform is the chat of sdk/examples/webhook_chat.
type chatPlatform struct {
	*httptest.Server
	port    int // of the webhook
	dedupes bool

	mu      sync.Mutex
	posts   int
	keys    map[string]bool
	shown   []chatPost
	uploads map[string]string // by id
}

type chatPost struct {
	Channel, Thread, Text string
	Files                 []string
}

func (p *chatPlatform) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Header.Get("Authorization") != "Bearer token" {
		http.Error(out, "who are you?", http.StatusUnauthorized)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	id, key := "", r.Header.Get("Idempotency-Key")
	switch {
	case r.Method == http.MethodGet:
		_, _ = io.WriteString(out, p.uploads[strings.TrimPrefix(r.URL.Path, "/files/")])
		return
	case r.URL.Path == "/files":
		id = "f" + key
		p.uploads[id] = string(body)
	default:
		id = "m" + key
		p.posts++
		var post chatPost
		if json.Unmarshal(body, &post) == nil && (!p.keys[key] || !p.dedupes) {
			p.keys[key] = true
			p.shown = append(p.shown, post)
		}
	}
	_ = json.NewEncoder(out).Encode(map[string]string{"id": id})
}

func (p *chatPlatform) seen() []chatPost {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]chatPost(nil), p.shown...)
}

// says posts one message to the webhook and returns the status; 0: there is no answer.
func (p *chatPlatform) says(hook map[string]any, secret string) int {
	body, _ := json.Marshal(hook)
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	sum := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(sum, "%s.%s", timestamp, body)
	r, _ := http.NewRequest(http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d/", p.port), bytes.NewReader(body))
	r.Header.Set("X-Chat-Timestamp", timestamp)
	r.Header.Set("X-Chat-Signature", "v1="+hex.EncodeToString(sum.Sum(nil)))
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

func hook(n int) map[string]any {
	return map[string]any{
		"id": fmt.Sprintf("h%d", n), "channel": fmt.Sprintf("room%d", n%7), "direct": true, "thread": "t",
		"user": map[string]string{"id": "me", "name": "Me"}, "text": fmt.Sprintf("<%d>", n),
	}
}

// webhookChat builds the example and drops it in, beside a platform, which may ignore that a
// message is repeated.
func (w *world) webhookChat(dedupes bool) *chatPlatform {
	w.t.Helper()
	_, modules := needNode(w.t)
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	p := &chatPlatform{
		port: lis.Addr().(*net.TCPAddr).Port, dedupes: dedupes, keys: map[string]bool{}, uploads: map[string]string{},
	}
	_ = lis.Close()
	p.Server = httptest.NewServer(p)
	w.t.Cleanup(p.Close)

	const example = "../../../sdk/examples/webhook_chat"
	build := filepath.Join(w.t.TempDir(), "webhook_chat")
	run := func(dir, program string, args ...string) {
		w.t.Helper()
		cmd := exec.CommandContext(w.t.Context(), program, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "CHAT_TOKEN=token", "CHAT_SIGNING_SECRET=secret")
		if out, err := cmd.CombinedOutput(); err != nil {
			w.t.Fatalf("%s %v: %v\n%s", program, args, err, out)
		}
	}
	run(".", "cp", "-R", example, build)
	run(build, "cp", "-R", modules, ".")
	run(build, "npm", "test")
	run(build, binary("switchboard"), "extensions", "verify", ".", "--secret", "CHAT_TOKEN", "--secret", "CHAT_SIGNING_SECRET")
	files := map[string]string{}
	for _, name := range []string{"package.json", "dist/main.js", "dist/platform.js", "dist/signature.js"} {
		text, err := os.ReadFile(filepath.Join(build, name))
		if err != nil {
			w.t.Fatal(err)
		}
		files[name] = string(text)
	}
	manifest, err := os.ReadFile(filepath.Join(example, "manifest.yaml"))
	if err != nil {
		w.t.Fatal(err)
	}
	edited := strings.NewReplacer("8095", strconv.Itoa(p.port), "https://chat.example.org", p.URL,
		"args: [dist/main.js]", "args: [dist/main.js], start_timeout: 60s").Replace(string(manifest))
	if !dedupes {
		edited = strings.Replace(edited, "dedupe: 24h", "dedupe: false", 1)
	}
	w.write("CHAT_TOKEN=token\nCHAT_SIGNING_SECRET=secret\n", 0o600, "secrets.env")
	w.nodeExtension("webhook_chat", edited+"restart: {backoff: 100ms, max: 100}\n", files)
	w.config("channels: {webhook_chat: {allow_from: [me]}}\nagents: {default: echo}")
	return p
}

// The channel in TypeScript takes what is signed, once, and answers in the thread.
func TestTheWebhookChatInNode(t *testing.T) {
	t.Parallel()
	needNode(t)
	w := newWorld(t)
	p := w.webhookChat(true)
	w.start()
	w.state(w.control(), "webhook_chat", "active")
	w.eventually("the webhook", func() bool { return p.says(hook(1), "another secret") == http.StatusUnauthorized })
	p.mu.Lock()
	p.uploads["f1"] = "a short file"
	p.mu.Unlock()
	withFile := hook(1)
	withFile["files"] = []any{map[string]any{"id": "f1", "name": "note.txt", "mime": "text/plain", "size": 12}}
	for range 3 {
		if status := p.says(withFile, "secret"); status != http.StatusOK {
			t.Errorf("the webhook is answered with %d", status)
		}
	}
	w.eventually("the answer", func() bool { return len(p.seen()) > 0 })
	w.settled()
	sum := sha256.Sum256([]byte("a short file"))
	want := "[document " + hex.EncodeToString(sum[:])[:6] + ": note.txt]"
	if got := p.seen(); len(got) != 1 || got[0].Channel != "room1" || got[0].Thread != "t" ||
		!strings.Contains(got[0].Text, "<1>") || !strings.Contains(got[0].Text, want) {
		t.Errorf("the chat shows %+v, want one message with %s", got, want)
	}
}

// TestKillsOfAChannelInNode kills the channel and the kernel 20 times during 1,000
// messages, which the chat repeats until they are taken. A chat that knows repetitions
// shows each answer once; in another one what comes twice has the mark.
func TestKillsOfAChannelInNode(t *testing.T) {
	needNode(t)
	for _, dedupes := range []bool{true, false} {
		t.Run(fmt.Sprintf("dedupes %v", dedupes), func(t *testing.T) { killsOfNode(t, dedupes) })
	}
}

func killsOfNode(t *testing.T, dedupes bool) {
	const messages, kills = 1000, 20
	w := newWorld(t)
	p := w.webhookChat(dedupes)
	w.start()
	w.state(w.control(), "webhook_chat", "active")
	took := time.Now()
	sent := make(chan int, messages)
	var senders sync.WaitGroup
	for s := range 4 {
		senders.Go(func() {
			for n := s; n < messages; n += 4 {
				for p.says(hook(n), "secret") != http.StatusOK && t.Context().Err() == nil {
					time.Sleep(5 * time.Millisecond) // the platform's pause
				}
				sent <- n
			}
		})
	}
	for n := range messages {
		<-sent
		if every := messages / (kills + 1); n%every == 0 && n/every >= 1 && n/every <= kills {
			if n/every%2 == 0 {
				w.restart()
			} else {
				kill(w.extensionProcess("dist/main.js"), syscall.SIGKILL)
			}
		}
	}
	senders.Wait()
	const mark = "(possibly sent before) "
	count := func() (first, marked map[string]int) {
		first, marked = map[string]int{}, map[string]int{}
		for _, m := range p.seen() {
			if text, is := strings.CutPrefix(m.Text, mark); is {
				marked[text]++
			} else {
				first[m.Text]++
			}
		}
		return first, marked
	}
	lost := func() (n int) {
		first, marked := count()
		for i := range messages {
			if text := fmt.Sprintf("<%d>", i); first[text]+marked[text] == 0 {
				n++
			}
		}
		return n
	}
	w.eventually("all answers", func() bool { return lost() == 0 })
	w.settled()
	first, marked := count()
	for text, n := range first {
		if n != 1 {
			t.Errorf("%s is shown %d times without a mark", text, n)
		}
	}
	if dedupes && len(p.seen()) != messages {
		t.Errorf("%d messages are shown", len(p.seen()))
	}
	t.Logf("%d messages and %d kills in %s: %d posts, %d shown, %d with the mark", messages, kills,
		time.Since(took).Round(time.Millisecond), p.posts, len(p.seen()), len(marked))
}
