// Package admin serves adminv1: rows of a running kernel for its owner, and what
// the owner does to it. What is made of rows for people is package sdk/admin.
//
// Package host serves it: to the owner on a socket of its own, and to extensions as
// far as their manifests grant it.
//
// # Promises
//
// A change is one commit of the kernel, durable when the answer comes. A request
// that ends early may still have had its effect. A stream of events that follows
// loses none while it lasts and repeats none. A slow reader of a stream holds no
// view of the store, and delays no one.
package admin

import (
	"context"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/kernel/bus"
	"github.com/switchboard-run/switchboard/kernel/directory"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/kernel/models"
	"github.com/switchboard-run/switchboard/kernel/router"
	"github.com/switchboard-run/switchboard/kernel/session"
	"github.com/switchboard-run/switchboard/kernel/supervisor"
	"github.com/switchboard-run/switchboard/kernel/tools"
)

// Installation is what only the program around the kernel knows, and can do.
type Installation interface {
	adminv1.InstallationServer // it changes extensions
	// Describe completes a status: version, home, sandbox, problems, hints, backups,
	// and how to repair the damage of a store, if there is any.
	Describe(s *adminv1.Status, damage error)
	// Extensions completes the rows of the extensions that run or shall run, and adds
	// the others. They are in the order of their ids.
	Extensions(rows []*adminv1.Extension) []*adminv1.Extension
	// Backup makes a backup and describes it in JSON. An empty file is named by the
	// installation.
	Backup(ctx context.Context, q *adminv1.BackupRequest) (*adminv1.BackupResponse, error)
	// Decide stores what the owner decided about an extension.
	Decide(ctx context.Context, q *adminv1.DecideRequest) (*adminv1.DecideResponse, error)
	// Configuration returns the configuration as it is on disk.
	Configuration(ctx context.Context, q *adminv1.ConfigurationRequest) (*adminv1.ConfigurationResponse, error)
	// Logs returns the newest lines of a log.
	Logs(ctx context.Context, q *adminv1.LogsRequest) (*adminv1.LogsResponse, error)
}

// Service implements the services of adminv1. All fields must be set.
type Service struct {
	Installation
	Started    time.Time
	Journal    journal.Store
	Bus        *bus.Bus
	Store      *session.Store
	Known      *directory.Directory
	Router     *router.MessageRouter
	Tools      *tools.Runner
	Ledger     *models.Ledger
	Supervisor *supervisor.Supervisor
}

// Register adds the services to a server.
func (s *Service) Register(server grpc.ServiceRegistrar) {
	adminv1.RegisterReadServer(server, s)
	adminv1.RegisterManageServer(server, s)
	adminv1.RegisterInstallationServer(server, s)
}

// send sends the rows that are read. No view of the store is held meanwhile.
func send[R any](s *Service, out grpc.ServerStreamingServer[R], read func(journal.Reader) ([]*R, error)) error {
	var rows []*R
	if err := s.Bus.View(out.Context(), func(r journal.Reader) (err error) {
		rows, err = read(r)
		return err
	}); err != nil {
		return err
	}
	for _, row := range rows {
		if err := out.Send(row); err != nil {
			return err
		}
	}
	return nil
}

// each sends the row of each key that has one.
func each[K, R any](
	s *Service, out grpc.ServerStreamingServer[R], keys []K, read func(journal.Reader, K) (*R, error),
) error {
	for _, key := range keys {
		if err := send(s, out, func(r journal.Reader) ([]*R, error) {
			row, err := read(r, key)
			if row == nil {
				return nil, err
			}
			return []*R{row}, err
		}); err != nil {
			return err
		}
	}
	return nil
}

// valid returns a text as gRPC carries it.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
