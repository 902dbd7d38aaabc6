package kernel

import (
	"context"
	"fmt"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/adminv1"
	"github.com/switchboard-run/switchboard/kernel/admin"
)

// AdminOptions are for the owner's clients.
type AdminOptions struct {
	// Token authorizes clients of the socket in RunDir; empty: there is no socket.
	Token        string
	Installation admin.Installation // nil: the rows of adminv1 are the kernel's alone
}

type unchanging = adminv1.UnimplementedInstallationServer

// alone is a kernel without an installation.
type alone struct{ unchanging }

// Describe implements admin.Installation.
func (alone) Describe(*adminv1.Status, error) {}

// Extensions implements admin.Installation.
func (alone) Extensions(rows []*adminv1.Extension) []*adminv1.Extension { return rows }

// Backup implements admin.Installation.
func (alone) Backup(context.Context, *adminv1.BackupRequest) (*adminv1.BackupResponse, error) {
	return nil, fmt.Errorf("%w: this kernel makes no backups", contract.ErrUnavailable)
}

// Decide implements admin.Installation.
func (alone) Decide(context.Context, *adminv1.DecideRequest) (*adminv1.DecideResponse, error) {
	return nil, fmt.Errorf("%w: this kernel asks for no consent", contract.ErrUnavailable)
}

// Configuration implements admin.Installation.
func (alone) Configuration(context.Context, *adminv1.ConfigurationRequest) (*adminv1.ConfigurationResponse, error) {
	return nil, fmt.Errorf("%w: this kernel has no configuration", contract.ErrUnavailable)
}

// Logs implements admin.Installation.
func (alone) Logs(context.Context, *adminv1.LogsRequest) (*adminv1.LogsResponse, error) {
	return nil, fmt.Errorf("%w: this kernel keeps no logs", contract.ErrUnavailable)
}
