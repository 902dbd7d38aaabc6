package kernel

import (
	"context"

	"github.com/switchboard-run/switchboard/kernel/control"
)

// Usage implements control.Kernel.
func (a admin) Usage(ctx context.Context, by string, days int) ([]control.Usage, error) {
	rows, err := a.ledger.Report(ctx, by, days)
	usage := make([]control.Usage, 0, len(rows))
	for _, r := range rows {
		usage = append(usage, control.Usage{Name: r.Name, Calls: r.Calls, Input: r.Input, Output: r.Output, Cached: r.Cached, Estimated: r.Estimated})
	}
	return usage, err
}
