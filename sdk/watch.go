package sdk

import (
	"context"
	"errors"
	"io"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/kernelv1"
)

// Watch calls each with every event of the topics (patterns, each of which
// needs a subscribe grant) from now on, until ctx ends or each returns an
// error, which Watch returns. Use it to display events, not to handle them: a
// watch that ends does not go on later where it was.
func (k *Kernel) Watch(ctx context.Context, topics []string, each func(Event) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := k.bus.Watch(ctx, &kernelv1.WatchRequest{Topics: topics})
	if err != nil {
		return contract.FromStatus(err)
	}
	for {
		e, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return contract.FromStatus(err)
		}
		if err := each(eventOf(e)); err != nil {
			return err
		}
	}
}
