package bus

import (
	"errors"
	"testing"

	"github.com/switchboard-run/switchboard/contract"
	"github.com/switchboard-run/switchboard/contract/busv1"
)

func TestAnEffectOfAnUnknownKindIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := newRegistry(nil).find(&busv1.Effect{}); !errors.Is(err, contract.ErrInvalid) {
		t.Errorf("an effect without a kind: %v", err)
	}
}
