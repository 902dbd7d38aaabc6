package journal

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
)

// Values yields the values of an owner whose keys begin with the prefix and sort
// after after, in order. It reads chunk of them at a time; 0 is 1000. It ends after
// an error.
func Values(r Reader, owner, prefix, after string, chunk int) iter.Seq2[KV, error] {
	chunk = cmp.Or(chunk, 1000)
	return func(yield func(KV, error) bool) {
		for more := true; more; {
			values, err := r.KVScan(owner, prefix, after, chunk)
			if err != nil {
				yield(KV{}, err)
				return
			}
			for _, v := range values {
				if !yield(v, nil) {
					return
				}
				after = v.Key
			}
			more = len(values) == chunk
		}
	}
}

// All returns what Values yields, decoded from JSON.
func All[T any](r Reader, owner, prefix string) (all []T, err error) {
	for kv, err := range Values(r, owner, prefix, "", 0) {
		if err != nil {
			return nil, err
		}
		var v T
		if err := kv.Decode(&v); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// Load decodes the JSON value of a key; nil: there is none.
func Load[T any](r Reader, owner, key string) (*T, error) {
	kv, err := r.KVGet(owner, key)
	if err != nil || kv.Version == 0 {
		return nil, err
	}
	v := new(T)
	return v, kv.Decode(v)
}

// Save stores a value as JSON.
func Save(tx Tx, owner, key string, v any) error {
	value, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", key, err)
	}
	_, err = tx.KVPut(owner, key, value)
	return err
}

// Decode decodes a JSON value.
func (v KV) Decode(to any) error {
	if err := json.Unmarshal(v.Value, to); err != nil {
		return fmt.Errorf("decode %s: %w", v.Key, err)
	}
	return nil
}
