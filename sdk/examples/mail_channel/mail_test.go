package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"
	"github.com/emersion/go-message/mail"
	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/sdktest"
)

const password = "correct horse"

// post is a mail server on loopback: IMAP in memory, and SMTP that keeps what it took.
type post struct {
	t          *testing.T
	imap, smtp string
	user       *imapmemserver.User

	mu     sync.Mutex
	news   chan struct{} // closed when a mail has arrived
	sent   [][]byte
	answer error // of SMTP to the next mail
	cut    bool  // end the connection without an answer to it
}

func newPost(t *testing.T) *post {
	t.Helper()
	p := &post{t: t, user: imapmemserver.NewUser("house@example.org", password), news: make(chan struct{})}
	if err := p.user.Create("INBOX", nil); err != nil {
		t.Fatal(err)
	}
	memory := imapmemserver.New()
	memory.AddUser(p.user)
	server := imapserver.New(&imapserver.Options{
		NewSession: func(*imapserver.Conn) (imapserver.Session, *imapserver.GreetingData, error) {
			return &mailbox{memory.NewSession().(imapserver.SessionIMAP4rev2), p}, nil, nil
		},
		Caps: imap.CapSet{imap.CapIMAP4rev1: {}, imap.CapIMAP4rev2: {}}, InsecureAuth: true,
		Logger: sdktest.Logger(t).StandardLogger(nil),
	})
	sender := smtp.NewServer(p)
	sender.AllowInsecureAuth, sender.Domain, sender.MaxMessageBytes = true, "localhost", 64<<20
	sender.ErrorLog = sdktest.Logger(t).StandardLogger(nil)
	p.imap, p.smtp = listen(t, server.Serve, server.Close), listen(t, sender.Serve, sender.Close)
	return p
}

// mailbox is a session that announces at the start of IDLE what came before it, as the
// servers that people use do. That of imapmemserver keeps it until the next mail.
type mailbox struct {
	imapserver.SessionIMAP4rev2
	p *post
}

func (m *mailbox) Idle(w *imapserver.UpdateWriter, stop <-chan struct{}) error {
	for {
		m.p.mu.Lock()
		news := m.p.news
		m.p.mu.Unlock()
		if err := m.Poll(w, true); err != nil {
			return err
		}
		select {
		case <-news:
		case <-stop:
			return nil
		}
	}
}

func listen(t *testing.T, serve func(net.Listener) error, end func() error) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = serve(l)
	}()
	t.Cleanup(func() {
		_ = end()
		<-done
	})
	return l.Addr().String()
}

// NewSession implements smtp.Backend.
func (p *post) NewSession(c *smtp.Conn) (smtp.Session, error) { return &session{p: p, c: c}, nil }

type session struct {
	p *post
	c *smtp.Conn
}

func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, pass string) error {
		if user != "house@example.org" || pass != password {
			return smtp.ErrAuthFailed
		}
		return nil
	}), nil
}

func (s *session) Mail(string, *smtp.MailOptions) error { return nil }
func (s *session) Rcpt(string, *smtp.RcptOptions) error { return nil }
func (s *session) Reset()                               {}
func (s *session) Logout() error                        { return nil }

func (s *session) Data(r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	if err := s.p.answer; err != nil {
		s.p.answer = nil
		return err
	}
	s.p.sent = append(s.p.sent, data)
	if s.p.cut {
		s.p.cut = false
		_ = s.c.Conn().Close()
	}
	return nil
}

// arrives puts a mail into the mailbox.
func (p *post) arrives(text string) {
	p.t.Helper()
	text = strings.ReplaceAll(text, "\n", "\r\n")
	if _, err := p.user.Append("INBOX", strings.NewReader(text), &imap.AppendOptions{}); err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.news)
	p.news = make(chan struct{})
}

func (p *post) mails() []*mail.Reader {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*mail.Reader
	for _, data := range p.sent {
		m, err := mail.CreateReader(bytes.NewReader(data))
		if err != nil {
			p.t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

func (p *post) options() sdktest.Options {
	return sdktest.Options{
		Manifest: "manifest.yaml", Secrets: map[string]string{"MAIL_PASSWORD": password},
		Config: map[string]any{"address": "house@example.org", "imap": p.imap, "smtp": p.smtp, "security": "none"},
	}
}

// runs starts the channel and waits until it reads the mailbox.
func (p *post) runs(o sdktest.Options) *sdktest.Kernel {
	p.t.Helper()
	k := sdktest.Start(p.t, newExtension(), o)
	p.reads(k)
	return k
}

func (p *post) reads(k *sdktest.Kernel) {
	k.WaitFor("the cursor", func() bool { return len(k.Keys(cursorKey)) == 1 })
}

func letter(id, more, text string) string {
	return fmt.Sprintf("From: Anna <Anna@example.com>\nTo: house@example.org\nMessage-ID: <%s@example.com>\n"+
		"Date: Mon, 02 Nov 2026 10:00:00 +0100\n%s\n%s", id, more, text)
}

func TestAThreadIsAConversation(t *testing.T) {
	p := newPost(t)
	p.arrives(letter("old", "Subject: from before\n", "Do not answer this.\n"))
	k := p.runs(p.options())
	p.arrives(letter("a", "Subject: Dinner\n", "Who cooks?\n"))
	p.arrives(letter("b", "Subject: Re: Dinner\nIn-Reply-To: <x@example.org>\nReferences: <a@example.com> <x@example.org>\n",
		"Thanks!\n\nOn Monday, the house wrote:\n> You do.\n"))
	got := k.AwaitReceived(2)
	first, second := got[0], got[1]
	if first.Text != "Dinner\n\nWho cooks?" || first.UserID != "anna@example.com" || first.UserName != "Anna" ||
		first.ThreadID != "a@example.com" || first.SentAt == 0 {
		t.Errorf("the first is %+v", first)
	}
	if second.Text != "Thanks!" || second.ThreadID != first.ThreadID || second.ConversationID != first.ConversationID {
		t.Errorf("the second is %+v", second)
	}
	k.Send(contract.ChannelSend{Text: "You do.", Conversation: first.ConversationID, Thread: first.ThreadID}).MustAck(t)
	h := p.mails()[0].Header
	subject, _ := h.Subject()
	references, _ := h.MsgIDList("References")
	answered, _ := h.MsgIDList("In-Reply-To")
	if subject != "Re: Dinner" || len(answered) != 1 || answered[0] != "b@example.com" ||
		strings.Join(references, " ") != "a@example.com x@example.org b@example.com" ||
		h.Get("Auto-Submitted") != "auto-replied" || !strings.Contains(h.Get("To"), "anna@example.com") {
		t.Errorf("the answer has subject %q, answers %q, references %q", subject, answered, references)
	}
}

// What came while the channel was down is reported, once, and what was reported is not
// reported again by a mailbox that was made again.
func TestEachMailIsReportedOnce(t *testing.T) {
	p := newPost(t)
	k := p.runs(p.options())
	p.arrives(letter("1", "Subject: One\n", "one\n"))
	k.AwaitReceived(1)
	k.Lose()
	p.arrives(letter("2", "Subject: Two\n", "two\n"))
	k.Restart(newExtension())
	k.AwaitReceived(2)
	k.Lose()
	if err := errors.Join(p.user.Delete("INBOX"), p.user.Create("INBOX", nil)); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"One", "Two", "Three"} {
		p.arrives(letter(fmt.Sprint(i+1), "Subject: "+name+"\n", "x\n"))
	}
	k.Restart(newExtension())
	var subjects []string
	for _, m := range k.AwaitReceived(3) {
		subject, _, _ := strings.Cut(m.Text, "\n")
		subjects = append(subjects, subject)
	}
	if strings.Join(subjects, " ") != "One Two Three" {
		t.Errorf("reported %q", subjects)
	}
}

func TestFilesGoBothWays(t *testing.T) {
	p := newPost(t)
	k := p.runs(p.options())
	p.arrives(letter("f", "Subject: Plan\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n",
		"--b\nContent-Type: text/html; charset=utf-8\n\n<style>p {}</style><p>See &amp; read</p>\n--b\n"+
			"Content-Type: application/pdf\nContent-Disposition: attachment; filename=plan.pdf\n"+
			"Content-Transfer-Encoding: base64\n\nJVBERg==\n--b--\n"))
	m := k.AwaitReceived(1)[0]
	if m.Text != "Plan\n\nSee & read" || len(m.Attachments) != 1 || m.Attachments[0].Name != "plan.pdf" ||
		m.Attachments[0].Size != 4 || m.Attachments[0].Blob == "" {
		t.Fatalf("received %+v", m)
	}
	k.Send(contract.ChannelSend{Text: "Back to you", Conversation: m.ConversationID, Attachments: m.Attachments}).MustAck(t)
	sent := p.mails()[0]
	if _, err := sent.NextPart(); err != nil {
		t.Fatal(err)
	}
	part, err := sent.NextPart()
	if err != nil {
		t.Fatal(err)
	}
	h, _ := part.Header.(*mail.AttachmentHeader)
	name, _ := h.Filename()
	if data, err := io.ReadAll(part.Body); name != "plan.pdf" || string(data) != "%PDF" || err != nil {
		t.Errorf("sent %s with %q: %v", name, data, err)
	}
}

// Machines are not answered, and neither is who may be someone else.
func TestWhatIsLeftAlone(t *testing.T) {
	p := newPost(t)
	o := p.options()
	o.Config.(map[string]any)["authenticated_by"] = "mx.example.org"
	k := p.runs(o)
	passed := "Authentication-Results: mx.example.org; dmarc=pass header.from=example.com\n"
	for i, more := range []string{
		passed + "Auto-Submitted: auto-replied\n", passed + "Precedence: bulk\n", passed + "List-Id: <all.example.com>\n", "",
		"Authentication-Results: mx.example.org; dmarc=fail header.from=example.com\n" + passed,
		"Authentication-Results: elsewhere.example.net; dmarc=pass header.from=example.com\n",
	} {
		p.arrives(letter(fmt.Sprint("no", i), more, "no\n"))
	}
	p.arrives(strings.Replace(letter("own", passed, "no\n"), "Anna@example.com", "HOUSE@example.org", 1))
	p.arrives("this is no mail\n")
	p.arrives(letter("yes", passed, "yes\n"))
	if got := k.AwaitReceived(1); len(got) != 1 || got[0].Text != "yes" {
		t.Errorf("received %+v", got)
	}
}

func TestOutcomesOfSending(t *testing.T) {
	p := newPost(t)
	k := p.runs(p.options())
	to := contract.ChannelSend{Text: "hello", Conversation: "anna@example.com"}
	p.answer = &smtp.SMTPError{Code: 550, Message: "no such mailbox"}
	k.Send(to).MustBe(t, busv1.Outcome_KIND_DROP)
	if len(p.mails()) != 0 {
		t.Errorf("%d were sent", len(p.mails()))
	}

	// It was taken, but no one knows: it is sent again, marked, as the same mail.
	p.cut = true
	k.Send(to).MustBe(t, busv1.Outcome_KIND_UNKNOWN)
	k.WaitFor("the second mail", func() bool { return len(p.mails()) == 2 })
	mails := p.mails()
	first, _ := mails[0].Header.MessageID()
	second, _ := mails[1].Header.MessageID()
	part, err := mails[1].NextPart()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(part.Body)
	if first != second || first == "" || !strings.Contains(string(text), "possibly sent before") || err != nil {
		t.Errorf("ids %q and %q, text %q: %v", first, second, text, err)
	}
}

func TestThePasswordStaysPrivate(t *testing.T) {
	p := newPost(t)
	o := p.options()
	o.Config.(map[string]any)["imap"] = "mail.example.org:143"
	k := sdktest.New(t, o)
	if err := k.TryStart(newExtension()); err == nil || !strings.Contains(err.Error(), "readable over the network") {
		t.Errorf("error %v", err)
	}
}

func TestConformance(t *testing.T) {
	p := newPost(t)
	sdktest.Conformance(t, newExtension, p.options())
}

var _ sdk.Channel = (*channel)(nil)
