package sdk_test

import (
	"context"

	"github.com/switchboard-run/switchboard/sdk"
)

// A subscription that counts events and notifies the user. The counter, the notice and
// the acknowledgement are one commit: each event counts exactly once. PutAt names the
// version that was read, so when two handlers race, one runs again.
func Example_subscription() {
	var kernel *sdk.Kernel
	sdk.Serve(sdk.Extension{
		ID: "visitors",
		Start: func(_ context.Context, k *sdk.Kernel) error {
			kernel = k
			return nil
		},
		Handle: func(ctx context.Context, e sdk.Event) (sdk.Effects, error) {
			var visit struct{ Name string }
			if err := e.Decode(&visit); err != nil {
				return nil, err // invalid: dropped, with the reason
			}
			count := 0
			stored, err := kernel.Get(ctx, "count")
			if err != nil {
				return nil, err // retried
			}
			if stored.Version > 0 {
				if err := stored.Decode(&count); err != nil {
					return nil, sdk.Drop(err.Error())
				}
			}
			return sdk.Effects{
				sdk.PutAt("count", count+1, stored.Version),
				sdk.Publish("system.user.notify", map[string]string{"text": visit.Name + " is here"}, sdk.Dedupe(e.ID)),
			}, nil
		},
	})
}
