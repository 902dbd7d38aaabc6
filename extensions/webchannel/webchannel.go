// Package webchannel is the page in the browser and the API for programs: a channel with its
// own log of conversations, and a client of the kernel's admin service. It listens on
// loopback unless it is told otherwise.
//
// The package opens the listener and puts the parts together:
//
//   - door decides who may come in, and as whom
//   - chat keeps conversations; it is the channel
//
// # Promises
//
// Everything that the page changes goes through the admin service and the channel, like the
// command line's changes. When the process dies, browsers connect again and miss nothing.
// Without an entry for it in config.yaml it isn't started and costs nothing.
package webchannel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/switchboard-run/switchboard/extensions/webchannel/chat"
	"github.com/switchboard-run/switchboard/extensions/webchannel/connections"
	"github.com/switchboard-run/switchboard/extensions/webchannel/door"
	"github.com/switchboard-run/switchboard/extensions/webchannel/hooks"
	"github.com/switchboard-run/switchboard/extensions/webchannel/page"
	"github.com/switchboard-run/switchboard/sdk"
	"github.com/switchboard-run/switchboard/sdk/admin"
)

// ID is the extension's id, and that of its channel.
const ID = "web_channel"

const (
	maxConnections = 2048
	headerTimeout  = 5 * time.Second
	idleTimeout    = 60 * time.Second
	maxHeader      = 32 << 10 // bytes
)

// New returns the extension of a program's version.
func New(version string) sdk.Extension {
	s := &site{chat: chat.New(time.Now), version: version}
	return sdk.Extension{ID: ID, Start: s.start, Stop: s.stop, Channel: s.chat, Tools: s.tools(), Handle: s.handle}
}

// site is the extension from its start to its stop.
type site struct {
	version string
	chat    *chat.Chat
	door    *door.Door
	hooks   *hooks.Hooks
	address string // URL, as people reach the page
	server  *http.Server
	serving sync.WaitGroup
	log     hclog.Logger
}

// handle handles the subscription of webhooks, the only one.
func (s *site) handle(ctx context.Context, e sdk.Event) (sdk.Effects, error) {
	return s.hooks.Handle(ctx, e)
}

func (s *site) start(ctx context.Context, k *sdk.Kernel) error {
	var c Config
	if err := k.Config(&c); err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	s.log = k.Log()
	var network net.ListenConfig
	listener, err := network.Listen(ctx, "tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w: end the other program, or set extensions.%s.config.listen to another address",
			c.Listen, err, ID)
	}
	client := admin.Over(k.Services().Conn)
	s.address = c.address(listener.Addr())
	s.door = door.New(door.Options{
		Store: k, Read: client, Manage: client, Channel: ID, Hosts: c.hosts(listener.Addr()),
		Secure: c.secure(), Proxy: c.Proxy, Style: page.Static("style.css"), Now: time.Now, Log: s.log,
	})
	s.chat.Start(k)
	mux := http.NewServeMux()
	if err := s.register(ctx, mux, k, client, c); err != nil {
		_ = listener.Close()
		return err
	}
	limited := connections.Limit(listener, maxConnections)
	s.server = &http.Server{
		Handler: s.door.Handler(mux, public...), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader, ConnState: limited.State, BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog: s.log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
	}
	if c.TLS != nil {
		s.server.TLSConfig = certificates(*c.TLS)
	}
	s.serving.Go(func() {
		serve := s.server.Serve
		if c.TLS != nil {
			serve = func(l net.Listener) error { return s.server.ServeTLS(l, "", "") }
		}
		if err := serve(limited); !errors.Is(err, http.ErrServerClosed) {
			k.SetReadiness(sdk.Offline, "the listener ended: "+err.Error())
		}
	})
	return nil
}

func (s *site) stop(ctx context.Context) error {
	if s.server == nil {
		return nil
	}
	err := s.server.Shutdown(ctx)
	if err != nil {
		err = s.server.Close()
	}
	s.serving.Wait()
	s.chat.Stop()
	return err
}
