package httpstatus

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
)

func TestErrorsHaveOneStatus(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want int
	}{
		{errors.New("x"), 500},
		{fmt.Errorf("read x: %w", contract.ErrInvalid), 422},
		{fmt.Errorf("read the body: %w", &http.MaxBytesError{Limit: 1}), 413},
		// As an error comes from another process.
		{contract.FromStatus(contract.ToStatus(fmt.Errorf("x: %w", contract.ErrNotFound))), 404},
		{contract.FromStatus(contract.ToStatus(fmt.Errorf("x: %w", contract.ErrFull))), 507},
	} {
		if got := Of(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}
