package console

import "iter"

// FetchWidth is the number of URLs that are judged at the same time when each may
// need a fetch.
const FetchWidth = 64

// InOrder does the work of each input, up to width at the same time, and
// hands the results to emit in the order of the inputs. It stops at the first
// error of emit. waiting reports that further results will follow.
func InOrder[In, Out any](width int, inputs iter.Seq[In], work func(In) Out, emit func(out Out, waiting bool) error) error {
	queue := make(chan chan Out, width) // one place for each result under way
	done := make(chan struct{})
	defer close(done)
	go feed(queue, done, inputs, work)
	for result := range queue {
		if err := emit(<-result, len(queue) > 0); err != nil {
			return err
		}
	}
	return nil
}

// feed starts the work of each input when there is room in the queue.
func feed[In, Out any](queue chan<- chan Out, done <-chan struct{}, inputs iter.Seq[In], work func(In) Out) {
	defer close(queue)
	for in := range inputs {
		result := make(chan Out, 1)
		select {
		case queue <- result:
			go func() { result <- work(in) }()
		case <-done:
			return
		}
	}
}
