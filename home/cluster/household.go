package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/home/cluster/link"
	"github.com/switchboard-run/switchboard/home/cluster/shared"
	"github.com/switchboard-run/switchboard/home/config"
	"github.com/switchboard-run/switchboard/kernel/journal"
	"github.com/switchboard-run/switchboard/store/sqlite"
)

// maxEdit bounds an edit of a shared file that another node sends.
const maxEdit = 100 << 20

// share opens the shared files of a cell; nil: this node lacks the key, so it shares
// none.
func (r *reach) share(cell string, home *config.Home) (*shared.Files, error) {
	if r.key == nil {
		return nil, nil
	}
	return shared.Open(shared.Options{
		Home: home, Key: r.key, Cell: cell, Node: r.node, Log: r.log.Named("shared"), Check: r.Check,
	})
}

// followFiles takes the files of a copy of the state. Edits go to the owner by way of a
// relay, while there is one.
func followFiles(ctx context.Context, files *shared.Files, f *sqlite.Follower, via *atomic.Pointer[link.Relay]) error {
	if files == nil {
		return nil
	}
	values, err := f.Values(ctx, contract.KernelSource, shared.Prefix)
	if err != nil {
		return fmt.Errorf("read the shared files: %w", err)
	}
	files.Follow(values, func(e shared.Edit) (revision int64, err error) {
		relay := via.Load()
		if relay == nil {
			return 0, errors.New("the cell has no owner")
		}
		body, err := json.Marshal(e)
		if err == nil {
			body, err = relay.Send(body)
		}
		if err == nil {
			err = json.Unmarshal(body, &revision)
		}
		if refused := (*link.Refused)(nil); errors.As(err, &refused) {
			switch refused.Status {
			case http.StatusConflict:
				err = shared.ErrStale
			case http.StatusUnprocessableEntity:
				err = fmt.Errorf("%w: %s", shared.ErrInvalid, strings.TrimPrefix(refused.Reason, shared.ErrInvalid.Error()+": "))
			}
		}
		return revision, err
	})
	return nil
}

// ownFiles brings the files and the state together on the owner, before its kernel reads
// them.
func ownFiles(ctx context.Context, files *shared.Files, store journal.Store) error {
	if files == nil {
		return nil
	}
	return files.Own(ctx, store)
}

// edits takes the edits of other nodes; nil: no files are shared.
func edits(files *shared.Files) http.Handler {
	if files == nil {
		return nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e shared.Edit
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxEdit))
		if err == nil {
			err = json.Unmarshal(body, &e)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		switch revision, err := files.Put(e); {
		case errors.Is(err, shared.ErrStale):
			http.Error(w, err.Error(), http.StatusConflict)
		case errors.Is(err, shared.ErrInvalid):
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		case err != nil:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		default:
			_ = json.NewEncoder(w).Encode(revision)
		}
	})
}
