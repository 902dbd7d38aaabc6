package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/emersion/go-message/mail"
	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/sdk"
)

// Send sends one mail.
func (c *channel) Send(ctx context.Context, m sdk.Message) (sdk.Receipt, error) {
	if !c.configured() {
		return sdk.Receipt{}, errUnconfigured
	}
	to := m.Conversation
	if to == "" {
		to = m.Owner
	}
	if to == "" {
		return sdk.Receipt{}, sdk.Drop("no one has written to " + c.settings.Address + " yet: write a mail to it first")
	}
	t, err := c.thread(ctx, m)
	if err != nil {
		return sdk.Receipt{}, err
	}
	id := c.idOf(m.ID)
	data, err := c.compose(ctx, m, to, id, t)
	if err != nil {
		return sdk.Receipt{}, err
	}
	if err := c.deliver(ctx, to, data); err != nil {
		return sdk.Receipt{}, err
	}
	t.References = append(t.References, id)
	return sdk.Receipt{ProviderID: id, Conversation: to, Thread: t.ID, Effects: sdk.Effects{t.put()}}, nil
}

// idOf is the Message-ID of a message: the same when it is sent again.
func (c *channel) idOf(message string) string {
	sum := sha256.Sum256([]byte(message))
	return hex.EncodeToString(sum[:16]) + "@" + c.domain()
}

// thread is the one that a message answers, or a new one.
func (c *channel) thread(ctx context.Context, m sdk.Message) (t thread, err error) {
	if m.Thread == "" {
		subject, _, _ := strings.Cut(strings.TrimSpace(m.Text), "\n")
		if short := []rune(subject); len(short) > 70 {
			subject = string(short[:69]) + "…"
		}
		return thread{ID: c.idOf(m.ID), Subject: subject}, nil
	}
	stored, err := c.kernel.Get(ctx, threadKey(m.Thread))
	if err != nil {
		return t, err
	}
	if len(stored.Value) == 0 {
		return thread{ID: m.Thread, References: []string{m.Thread}}, nil
	}
	return t, json.Unmarshal(stored.Value, &t)
}

func (c *channel) compose(ctx context.Context, m sdk.Message, to, id string, t thread) ([]byte, error) {
	files, m := m.SplitFiles()
	var h mail.Header
	h.SetDate(m.CreatedAt)
	h.SetAddressList("From", []*mail.Address{{Name: c.kernel.Name(), Address: c.settings.Address}})
	h.SetAddressList("To", []*mail.Address{{Address: to}})
	h.SetMessageID(id)
	h.Set("Auto-Submitted", "auto-replied") // so that no other machine answers it
	subject := t.Subject
	if n := len(t.References); n > 0 {
		h.SetMsgIDList("In-Reply-To", t.References[n-1:])
		h.SetMsgIDList("References", t.References)
		if !strings.HasPrefix(strings.ToLower(subject), "re:") {
			subject = strings.TrimSpace("Re: " + subject)
		}
	}
	h.SetSubject(subject)
	var out bytes.Buffer
	w, err := mail.CreateWriter(&out, h)
	if err != nil {
		return nil, err
	}
	var text mail.InlineHeader
	text.SetContentType("text/plain", map[string]string{"charset": "utf-8"})
	body, err := w.CreateSingleInline(text)
	if err == nil {
		_, err = io.WriteString(body, m.Text+"\n")
		err = errors.Join(err, body.Close())
	}
	for _, f := range files {
		if err == nil {
			err = c.attach(ctx, w, f)
		}
	}
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}

func (c *channel) attach(ctx context.Context, w *mail.Writer, f contract.Attachment) error {
	var h mail.AttachmentHeader
	h.SetFilename(f.Name)
	kind := f.MIME
	if kind == "" {
		kind = "application/octet-stream"
	}
	h.SetContentType(kind, nil)
	body, err := w.CreateAttachment(h)
	if err != nil {
		return err
	}
	if _, err := c.kernel.GetBlob(ctx, f.Blob, body); err != nil {
		return fmt.Errorf("attach %s: %w", f.Name, err)
	}
	return body.Close()
}

// deliver hands a mail to the server. An error after the end of the text means that it may
// have been sent, unless the server says otherwise.
func (c *channel) deliver(ctx context.Context, to string, data []byte) error {
	client, err := c.smtp()
	if err != nil {
		return fmt.Errorf("connect to %s: %w", c.settings.SMTP, err)
	}
	defer func() { _ = client.Close() }()
	defer context.AfterFunc(ctx, func() { _ = client.Close() })()
	client.CommandTimeout, client.SubmissionTimeout = time.Minute, 5*time.Minute
	if ok, _ := client.Extension("AUTH"); ok {
		if err := client.Auth(sasl.NewPlainClient("", c.settings.User, c.password)); err != nil {
			return fmt.Errorf("log in to %s as %s: %w; is MAIL_PASSWORD right?", c.settings.SMTP, c.settings.User, err)
		}
	}
	if err := client.Mail(c.settings.Address, nil); err != nil {
		return refused(err)
	}
	if err := client.Rcpt(to, nil); err != nil {
		return refused(err)
	}
	body, err := client.Data()
	if err != nil {
		return refused(err)
	}
	if _, err := body.Write(data); err != nil {
		return err // without its end, the server sends nothing
	}
	if err := body.Close(); err != nil {
		if answer := (*smtp.SMTPError)(nil); errors.As(err, &answer) {
			return refused(err)
		}
		return sdk.Unknown(err)
	}
	_ = client.Quit()
	return nil
}

func (c *channel) smtp() (*smtp.Client, error) {
	switch server := c.settings.SMTP; c.settings.Security {
	case "none":
		return smtp.Dial(server)
	case "starttls":
		return smtp.DialStartTLS(server, c.tls(server))
	default:
		return smtp.DialTLS(server, c.tls(server))
	}
}

// refused gives up on a mail that the server will never take.
func refused(err error) error {
	if answer := (*smtp.SMTPError)(nil); errors.As(err, &answer) && answer.Code >= 500 && answer.Code != 535 {
		return sdk.Drop(err.Error())
	}
	return err
}
