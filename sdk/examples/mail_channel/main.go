// Command mail_channel is a channel by e-mail. It receives by IMAP, waiting with IDLE, and
// sends by SMTP; a thread of mail is a conversation.
//
// A mail that arrived is accepted in the same commit that moves the cursor beyond it:
// whatever is killed and when, it is reported once. A mail that may have been sent before
// has the same Message-ID the second time, by which most mailboxes show it once, and the
// mark in its text for those that do not.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/switchboard-run/switchboard/sdk"
)

func main() { sdk.Serve(newExtension()) }

func newExtension() sdk.Extension {
	c := &channel{}
	return sdk.Extension{ID: "mail_channel", Start: c.start, Run: c.receive, Channel: c}
}

type channel struct {
	kernel   *sdk.Kernel
	settings settings
	password string
}

// settings are those of config.yaml.
type settings struct {
	Address, User, IMAP, SMTP, Security, Mailbox string
	AuthenticatedBy                              string `json:"authenticated_by"`
}

func (c *channel) start(_ context.Context, k *sdk.Kernel) error {
	c.kernel, c.password = k, k.Secret("MAIL_PASSWORD")
	if err := k.Config(&c.settings); err != nil {
		return err
	}
	s := &c.settings
	if s.User == "" {
		s.User = s.Address
	}
	if !c.configured() {
		k.SetReadiness(sdk.Unconfigured,
			"set address, imap and smtp under extensions.mail_channel.config in config.yaml, and MAIL_PASSWORD in secrets.env")
		return nil
	}
	if s.Security != "none" {
		return nil
	}
	for _, server := range []string{s.IMAP, s.SMTP} {
		host, _, err := net.SplitHostPort(server)
		if err != nil {
			return err
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return fmt.Errorf("security: none sends the password of %s readable over the network: use tls or starttls", server)
		}
	}
	return nil
}

func (c *channel) configured() bool {
	s := c.settings
	return s.Address != "" && s.IMAP != "" && s.SMTP != "" && c.password != ""
}

// tls is the configuration for a server, whose certificate must be its own.
func (c *channel) tls(server string) *tls.Config {
	host, _, _ := net.SplitHostPort(server)
	return &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
}

var errUnconfigured = errors.New("the channel is not set up")

// domain is that of the assistant's address, for the ids of its mails.
func (c *channel) domain() string {
	_, domain, _ := strings.Cut(c.settings.Address, "@")
	return domain
}
