// Types of the API's answers, made of its OpenAPI document by `python -m emulator.api.description.typescript`: do not edit.

export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        Archive: {
            members: components["schemas"]["Member"][];
            complete: boolean;
        };
        BucketList: {
            buckets: string[];
        };
        Call: {
            name: string;
            file: string;
            line: number;
            seconds: number;
            own: number;
            children: components["schemas"]["Call"][];
        };
        Collection: {
            name: string;
            tensors: string[];
            configuration: {
                [key: string]: unknown;
            };
        };
        Confusion: {
            counts: number[][];
            step: number;
        };
        Delivery: {
            event_id: string;
            account: string;
            rule_arn: string;
            target_id: string;
            target_arn: string;
            succeeded: boolean;
            answer: string;
            request_id: string;
            function: string;
            timeMs: number;
        };
        EventList: {
            events: components["schemas"]["SentEvent"][];
        };
        ExecutionReference: {
            region: string;
            name: string;
            pipeline: string;
        };
        FlameGraph: {
            profiler: string;
            profiles: number;
            known: number;
            damaged: number;
            seconds: number;
            tree: components["schemas"]["Call"];
            functions: components["schemas"]["FunctionTime"][];
        };
        FunctionTime: {
            name: string;
            file: string;
            line: number;
            own: number;
        };
        Health: {
            status: string;
            version: string;
            pid: number;
            endpoint: string;
            advertised: string | null;
            region: string;
            account: string;
            stateDir: string;
            lastImport: string | null;
            copy?: string;
            runtime?: string;
            runtimeReason?: string;
            jobRegions?: string[];
            runningTrainingJobs?: number;
            runningRuleEvaluations?: number;
            undeliveredEvents?: number;
            swarm?: components["schemas"]["Swarm"];
        };
        HeatMap: {
            tensors: string[];
            known: number;
            steps: number[];
            modes: string[];
            values: (number | string | null)[][];
        };
        Histogram: {
            tensor: string;
            scale: string;
            edges: number[];
            steps: number[];
            modes: string[];
            shares: number[][];
            counts: components["schemas"]["ValueCounts"][];
        };
        Job: {
            name: string;
            region: string;
            status: string;
            creationMs: number;
            endMs: number | null;
            failureReason: string | null;
            secondaryStatus: string;
            savesTensors: boolean;
            warnings: components["schemas"]["Warning"][];
            rules: components["schemas"]["Rule"][];
            spent: components["schemas"]["SpentSeconds"][];
            account: string;
            request: {
                [key: string]: unknown;
            };
            description: {
                [key: string]: unknown;
            };
            transitions: components["schemas"]["Transition"][];
            events: components["schemas"]["SentEvent"][];
            links: {
                [key: string]: string;
            };
            hosts: string[];
            tags: {
                [key: string]: string;
            };
            tuningJob: string | null;
            execution: components["schemas"]["ExecutionReference"] | null;
        };
        JobList: {
            jobs: components["schemas"]["JobSummary"][];
            total: number;
            regions: string[];
            account: string;
        };
        JobSummary: {
            name: string;
            region: string;
            status: string;
            creationMs: number;
            endMs: number | null;
            failureReason: string | null;
            secondaryStatus: string;
            savesTensors: boolean;
            warnings: components["schemas"]["Warning"][];
            rules: components["schemas"]["RuleSummary"][];
            description?: {
                [key: string]: unknown;
            };
        };
        JobTags: {
            tags: {
                [key: string]: string;
            };
        };
        Level: {
            bucket: string;
            prefix: string;
            folders: string[];
            objects: components["schemas"]["StoredObject"][];
            after: string;
        };
        Line: {
            tensor: string;
            mode: string;
            worker: string;
            known: number;
            read: number;
            unread: number;
            steps: number[];
            min: (number | null)[];
            max: (number | null)[];
            mean: (number | null)[];
            notFinite: components["schemas"]["NotFinite"];
            timesMs?: (number | null)[];
        };
        LogLine: {
            number: number;
            timeMs: number;
            message: string;
        };
        LogStream: {
            stream: string;
            host: string;
            total: number;
            lines: components["schemas"]["LogLine"][];
        };
        Logs: {
            streams: components["schemas"]["LogStream"][];
        };
        LoopTime: {
            process: string;
            seconds: number;
            steps: number;
            median_step: number | null;
            forward: number | null;
            backward: number | null;
            data_loading: number | null;
            other: number;
        };
        Member: {
            name: string;
            size: number;
            isFile: boolean;
        };
        Metric: {
            name: string;
            host: string;
            unit: string;
            timesMs: number[];
            values: number[];
        };
        Metrics: {
            series: components["schemas"]["Metric"][];
        };
        Node: {
            name: string;
            address: string;
            state: string;
            cpus: number;
            memoryBytes: number;
            containers: string[];
        };
        NotFinite: {
            count: number;
            first: [
                number,
                string
            ][];
        };
        Phases: {
            process: string;
            columns: number;
            shares: {
                [key: string]: number[];
            };
        };
        PipelineExecution: {
            name: string;
            region: string;
            status: string;
            creationMs: number;
            endMs: number | null;
            failureReason: string | null;
            pipeline: string;
            title: string;
            steps: number;
            stepsEnded: number;
            stepList: components["schemas"]["PipelineStep"][];
            parameters: {
                [key: string]: unknown;
            };
            description: {
                [key: string]: unknown;
            };
        };
        PipelineExecutionList: {
            jobs: components["schemas"]["PipelineExecutionSummary"][];
            total: number;
        };
        PipelineExecutionSummary: {
            name: string;
            region: string;
            status: string;
            creationMs: number;
            endMs: number | null;
            failureReason: string | null;
            pipeline: string;
            title: string;
            steps: number;
            stepsEnded: number;
        };
        PipelineStep: {
            name: string;
            type: string;
            needs: string[];
            status: string | null;
            startMs: number | null;
            endMs: number | null;
            failureReason: string | null;
            job: string | null;
            outcome: string | null;
        };
        ProcessingJob: {
            name: string;
            region: string;
            status: string;
            creationMs: number;
            endMs: number | null;
            failureReason: string | null;
            image: string;
            trainingJob: string | null;
            rule: string | null;
            execution: components["schemas"]["ExecutionReference"] | null;
            exitMessage: string | null;
            hosts: string[];
            links: {
                [key: string]: string;
            };
            description: {
                [key: string]: unknown;
            };
        };
        ProcessingJobList: {
            jobs: components["schemas"]["ProcessingJobSummary"][];
            total: number;
        };
        ProcessingJobSummary: {
            name: string;
            region: string;
            status: string;
            creationMs: number;
            endMs: number | null;
            failureReason: string | null;
            image: string;
            trainingJob: string | null;
            rule: string | null;
        };
        Profile: {
            ended: boolean;
            damaged: number;
            nodes: string[];
            samples: number;
            events: number;
            span: [
                number,
                number
            ] | null;
            usage: components["schemas"]["Usage"][];
            time: components["schemas"]["LoopTime"][];
            phases: components["schemas"]["Phases"][];
            lines: components["schemas"]["UsageLine"][];
            steps: components["schemas"]["StepDurations"][];
            pythonProfiles: components["schemas"]["PythonProfile"][];
            pythonProfilesKnown: number;
        };
        PythonProfile: {
            framework: string;
            profiler: string;
            process: string;
            name: string;
            begin: [
                string,
                string,
                string
            ];
            end: [
                string,
                string,
                string
            ];
            begin_s: number;
            end_s: number;
        };
        Quantity: {
            Quantity: string;
            Threshold: number | string | null;
            FiresWhen: string;
            Steps: number[];
            Values: (number | string)[];
            Tensors?: string[];
            Workers?: (string | null)[];
            Modes?: (string | null)[];
        };
        Report: {
            Finding: components["schemas"]["RuleFinding"] | null;
            RuleParameters: {
                [key: string]: unknown;
            };
            StepsEvaluated: {
                [key: string]: number | null;
            };
            Series: components["schemas"]["Quantity"][];
            RuleEvaluationStatus: string;
        };
        Retry: {
            name: string;
            status: string;
            details: string;
            parameters: {
                [key: string]: string;
            };
            report: components["schemas"]["Report"] | null;
            plot: string | null;
        };
        Rule: {
            name: string;
            status: string;
            details: string | null;
            processingJob: string;
            parameters: {
                [key: string]: string;
            };
            outputUri: string;
            report: components["schemas"]["Report"] | null;
            startMs: number | null;
            endMs: number | null;
        };
        RuleFinding: {
            Step?: number;
            Value?: number | string;
        };
        RuleSummary: {
            name: string;
            status: string;
        };
        Run: {
            steps: components["schemas"]["Steps"];
            modes: string[];
            workers: string[];
            ended: boolean;
            tensors: components["schemas"]["Tensor"][];
            collections: components["schemas"]["Collection"][];
            damaged: string[];
            complete: boolean;
        };
        SentEvent: {
            sequence: number;
            timeMs: number;
            service: string;
            region: string;
            content: {
                [key: string]: unknown;
            };
            deliveries: components["schemas"]["Delivery"][];
        };
        Series: {
            series: components["schemas"]["Line"][];
            lastStep: number;
            ended: boolean;
        };
        SpentSeconds: {
            phase: string;
            seconds: number;
        };
        StepDurations: {
            times: number[];
            low: (number | null)[];
            mean: (number | null)[];
            high: (number | null)[];
            process: string;
            mode: string;
        };
        Steps: {
            count: number;
            first: number | null;
            last: number | null;
        };
        StoredObject: {
            key: string;
            size: number;
            modifiedMs: number;
        };
        Swarm: {
            nodes: components["schemas"]["Node"][];
            waiting: components["schemas"]["WaitingContainer"][];
            error?: string;
        };
        Tensor: {
            name: string;
            saved: string[];
        };
        TensorBoardAddress: {
            url: string;
        };
        Transition: {
            status: string;
            startMs: number;
            endMs: number | null;
            message: string;
        };
        Trial: {
            name: string;
            region: string;
            status: string;
            creationMs: number;
            endMs: number | null;
            failureReason: string | null;
            definition: string;
            parameters: {
                [key: string]: string;
            };
            objective: string;
            objectiveStatus: string;
            value: number | null;
        };
        TuningJob: {
            name: string;
            region: string;
            status: string;
            creationMs: number;
            endMs: number | null;
            failureReason: string | null;
            strategy: string;
            objective: string;
            direction: string;
            trials: number;
            mostTrials: number | null;
            best: number | null;
            execution: components["schemas"]["ExecutionReference"] | null;
            bestTrial: string | null;
            trialJobs: components["schemas"]["Trial"][];
            description: {
                [key: string]: unknown;
            };
        };
        TuningJobList: {
            jobs: components["schemas"]["TuningJobSummary"][];
            total: number;
        };
        TuningJobSummary: {
            name: string;
            region: string;
            status: string;
            creationMs: number;
            endMs: number | null;
            failureReason: string | null;
            strategy: string;
            objective: string;
            direction: string;
            trials: number;
            mostTrials: number | null;
            best: number | null;
        };
        Usage: {
            node: string;
            metric: string;
            unit: string;
            mean: number;
            p50: number;
            p95: number;
            max: number;
        };
        UsageLine: {
            times: number[];
            low: (number | null)[];
            mean: (number | null)[];
            high: (number | null)[];
            node: string;
            figure: string;
            unit: string;
        };
        ValueCounts: {
            size: number;
            zero: number;
            notFinite: number;
        };
        Values: {
            tensor: string;
            step: number;
            workers: string[];
            reductions: {
                [key: string]: number | string;
            };
            shape?: number[];
            dtype?: string;
            plane?: (number | string | boolean)[][];
            index?: number[];
            texts?: string[];
            tooLarge?: string;
            bytes?: number;
            min?: number | null;
            max?: number | null;
            mean?: number | null;
            std?: number | null;
            notFinite?: number;
        };
        WaitingContainer: {
            container: string;
            why: string;
        };
        Warning: {
            code: string;
            text: string;
            remedy: string;
            brief: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type Archive = components['schemas']['Archive'];
export type BucketList = components['schemas']['BucketList'];
export type Call = components['schemas']['Call'];
export type Collection = components['schemas']['Collection'];
export type Confusion = components['schemas']['Confusion'];
export type Delivery = components['schemas']['Delivery'];
export type EventList = components['schemas']['EventList'];
export type ExecutionReference = components['schemas']['ExecutionReference'];
export type FlameGraph = components['schemas']['FlameGraph'];
export type FunctionTime = components['schemas']['FunctionTime'];
export type Health = components['schemas']['Health'];
export type HeatMap = components['schemas']['HeatMap'];
export type Histogram = components['schemas']['Histogram'];
export type Job = components['schemas']['Job'];
export type JobList = components['schemas']['JobList'];
export type JobSummary = components['schemas']['JobSummary'];
export type JobTags = components['schemas']['JobTags'];
export type Level = components['schemas']['Level'];
export type Line = components['schemas']['Line'];
export type LogLine = components['schemas']['LogLine'];
export type LogStream = components['schemas']['LogStream'];
export type Logs = components['schemas']['Logs'];
export type LoopTime = components['schemas']['LoopTime'];
export type Member = components['schemas']['Member'];
export type Metric = components['schemas']['Metric'];
export type Metrics = components['schemas']['Metrics'];
export type Node = components['schemas']['Node'];
export type NotFinite = components['schemas']['NotFinite'];
export type Phases = components['schemas']['Phases'];
export type PipelineExecution = components['schemas']['PipelineExecution'];
export type PipelineExecutionList = components['schemas']['PipelineExecutionList'];
export type PipelineExecutionSummary = components['schemas']['PipelineExecutionSummary'];
export type PipelineStep = components['schemas']['PipelineStep'];
export type ProcessingJob = components['schemas']['ProcessingJob'];
export type ProcessingJobList = components['schemas']['ProcessingJobList'];
export type ProcessingJobSummary = components['schemas']['ProcessingJobSummary'];
export type Profile = components['schemas']['Profile'];
export type PythonProfile = components['schemas']['PythonProfile'];
export type Quantity = components['schemas']['Quantity'];
export type Report = components['schemas']['Report'];
export type Retry = components['schemas']['Retry'];
export type Rule = components['schemas']['Rule'];
export type RuleFinding = components['schemas']['RuleFinding'];
export type RuleSummary = components['schemas']['RuleSummary'];
export type Run = components['schemas']['Run'];
export type SentEvent = components['schemas']['SentEvent'];
export type Series = components['schemas']['Series'];
export type SpentSeconds = components['schemas']['SpentSeconds'];
export type StepDurations = components['schemas']['StepDurations'];
export type Steps = components['schemas']['Steps'];
export type StoredObject = components['schemas']['StoredObject'];
export type Swarm = components['schemas']['Swarm'];
export type Tensor = components['schemas']['Tensor'];
export type TensorBoardAddress = components['schemas']['TensorBoardAddress'];
export type Transition = components['schemas']['Transition'];
export type Trial = components['schemas']['Trial'];
export type TuningJob = components['schemas']['TuningJob'];
export type TuningJobList = components['schemas']['TuningJobList'];
export type TuningJobSummary = components['schemas']['TuningJobSummary'];
export type Usage = components['schemas']['Usage'];
export type UsageLine = components['schemas']['UsageLine'];
export type ValueCounts = components['schemas']['ValueCounts'];
export type Values = components['schemas']['Values'];
export type WaitingContainer = components['schemas']['WaitingContainer'];
export type Warning = components['schemas']['Warning'];
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
